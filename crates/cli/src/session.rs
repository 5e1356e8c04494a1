//! Connecting two parties and making sure that they are about to do the same thing.

use std::path::{Path, PathBuf};
use std::time::Duration;

use volvelle_net::{
    Channel, Config, Credentials, Handshake, Listener, NetError, NewIdentity, Role, Security,
    connect, memory_pair_with,
};

use crate::args::plan::ProtocolChoice;
use crate::args::store::EndpointArgs;
use crate::args::{Ahead, BenchArgs, PeerArgs, RemoteArgs, Transport};
use crate::child::Event;
use crate::connections::{Reception, Terms, Visit, visit};
use crate::digits::fixed::{FRAC, RING_BITS, W1_BITS, W2_BITS};
use crate::digits::{CLASSES, HIDDEN, PIXELS};
use crate::error::CliError;

/// Time limit between the parties of a bench, which may compute for long between two messages.
const BENCH_TIMEOUT: Duration = Duration::from_secs(600);
/// How long the ends of a bench in one process wait for each other to connect.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Where `volvelle keygen` puts a certificate: `DIR/NAME.cert.pem`.
pub fn certificate_path(identity: &Path) -> PathBuf {
    with_suffix(identity, ".cert.pem")
}

/// Where `volvelle keygen` puts a key: `DIR/NAME.key.pem`.
pub fn key_path(identity: &Path) -> PathBuf {
    with_suffix(identity, ".key.pem")
}

/// Unlike `with_extension`, keeps dots in the name.
fn with_suffix(identity: &Path, suffix: &str) -> PathBuf {
    let mut path = identity.as_os_str().to_owned();
    path.push(suffix);
    path.into()
}

/// What protects the connection.
///
/// # Errors
/// If a key or certificate is missing, malformed or expired.
pub fn security(peer: &PeerArgs) -> Result<Security, CliError> {
    match (&peer.identity, &peer.peer_cert) {
        (Some(identity), Some(peer_cert)) => tls(identity, peer_cert),
        _ => Ok(Security::Plain),
    }
}

fn tls(identity: &Path, peer_cert: &Path) -> Result<Security, CliError> {
    let (certificate, key) = (certificate_path(identity), key_path(identity));
    Ok(Security::Tls(Credentials::load(
        &certificate,
        &key,
        peer_cert,
    )?))
}

/// Time limit and link.
pub fn config(peer: &PeerArgs) -> Config {
    Config::new()
        .timeout(Duration::from_secs(peer.timeout.into()))
        .link(peer.link)
}

/// What both parties of a classification must agree on.
pub fn handshake(batch: u32, protocol: ProtocolChoice) -> Handshake {
    Handshake::new()
        .parameter("task", "digits")
        .parameter("network", format!("{PIXELS}-{HIDDEN}-{CLASSES} gelu"))
        .parameter("ring bits", RING_BITS)
        .parameter("fraction bits", FRAC)
        .parameter("weight bits", format!("{W1_BITS} {W2_BITS}"))
        .parameter("batch", batch)
        .parameter("lookup protocol", protocol.name())
}

/// Runs a party's part; if it fails, the peer is told why before the connection ends.
pub fn converse<T>(
    mut channel: Channel,
    part: impl FnOnce(&mut Channel) -> Result<T, CliError>,
) -> Result<T, CliError> {
    match part(&mut channel) {
        Ok(value) => {
            channel.close()?;
            Ok(value)
        }
        Err(error) => {
            give_up(&mut channel, &error);
            Err(error)
        }
    }
}

/// Tells the peer why the connection ends. A peer that has given up itself or is gone need not be told.
pub fn give_up(channel: &mut Channel, error: &CliError) {
    if !matches!(
        error,
        CliError::Net(NetError::PeerAborted { .. } | NetError::Disconnected { .. })
    ) {
        channel.abort(&error.to_string());
    }
}

/// How connections are made for a command with this handshake.
///
/// # Errors
/// If a key or certificate is no good.
pub fn terms(peer: &PeerArgs, ahead: Ahead, handshake: Handshake) -> Result<Terms, CliError> {
    Ok(Terms {
        security: security(peer)?,
        config: config(peer),
        // A few messages go to and fro.
        patience: Duration::from_secs(peer.timeout.into()) + 4 * peer.link.rtt(),
        handshake: handshake.parameter("ahead", ahead.name()),
        ahead,
    })
}

/// Waits for the peer, or connects to it; says on which address it waits.
///
/// # Errors
/// If the connection fails, or the peer wants something else.
pub fn meet(endpoint: &EndpointArgs, terms: Terms, json: bool) -> Result<Visit, CliError> {
    let Some(address) = &endpoint.listen else {
        return visit(endpoint.connect.as_deref().unwrap_or_default(), &terms);
    };
    let listener = Listener::bind(address)?;
    let listening = listener.local_addr().to_string();
    if json {
        Event::Listening { listening }.print()?;
    } else {
        eprintln!("listening on {listening}");
    }
    Reception::open(listener, terms).next()
}

/// Client and server ends of a bench's connections, in turns, all in this process.
///
/// # Errors
/// If the transport cannot be set up.
pub fn local_channels(bench: &BenchArgs) -> Result<Vec<Channel>, CliError> {
    let config = Config::new().timeout(BENCH_TIMEOUT).link(bench.link);
    let connections = bench.threads as usize * bench.connections();
    let (client, server) = match bench.transport {
        Transport::Memory => {
            let pairs = (0..connections).map(|_| memory_pair_with(&config));
            return Ok(pairs
                .flat_map(|(client, server)| [client, server])
                .collect());
        }
        Transport::Tcp => (Security::Plain, Security::Plain),
        Transport::Tls => throw_away_credentials()?,
    };
    let listener = Listener::bind("127.0.0.1:0")?;
    let address = listener.local_addr().to_string();
    let pair = || -> Result<[Channel; 2], CliError> {
        std::thread::scope(|scope| {
            let accepted = scope
                .spawn(|| listener.accept(Role::Server, &server, &config, Some(CONNECT_TIMEOUT)));
            let connected = connect(&address, Role::Client, &client, &config)?;
            let accepted = accepted
                .join()
                .unwrap_or_else(|e| std::panic::resume_unwind(e))?;
            Ok([connected, accepted])
        })
    };
    let pairs = (0..connections)
        .map(|_| pair())
        .collect::<Result<Vec<_>, _>>()?;
    Ok(pairs.into_iter().flatten().collect())
}

/// This party's ends of a bench's connections, the peer being another process: made one after the other, each
/// having compared the bench's parameters.
///
/// # Errors
/// If the connection fails, or the peer runs another bench.
pub fn remote_channels(
    bench: &BenchArgs,
    remote: &RemoteArgs,
    parameters: &[(&'static str, serde_json::Value)],
) -> Result<Vec<Channel>, CliError> {
    let security = match (&remote.identity, &remote.peer_cert) {
        (Some(identity), Some(peer_cert)) => tls(identity, peer_cert)?,
        _ if remote.plain_tcp => Security::Plain,
        _ => return Err(CliError::NoIdentity),
    };
    let config = Config::new().link(bench.link);
    let mut open: Box<dyn FnMut() -> Result<Channel, NetError>> =
        match (&remote.listen, &remote.connect) {
            (Some(address), _) => {
                let listener = Listener::bind(address)?;
                eprintln!("listening on {}", listener.local_addr());
                Box::new(move || listener.accept(Role::Server, &security, &config, None))
            }
            (None, address) => {
                let address = address.clone().unwrap_or_default();
                Box::new(move || connect(&address, Role::Client, &security, &config))
            }
        };
    let hello = |number: usize| {
        let shown = |value: &serde_json::Value| value.to_string().trim_matches('"').to_owned();
        let hello = Handshake::new()
            .parameter("threads", bench.threads)
            .parameter("connection", number);
        parameters.iter().fold(hello, |hello, (name, value)| {
            hello.parameter(name, shown(value))
        })
    };
    (0..bench.threads as usize * bench.connections())
        .map(|number| {
            let mut channel = open()?;
            hello(number).run(&mut channel)?;
            Ok(channel)
        })
        .collect()
}

/// Identities for one bench, never written down.
fn throw_away_credentials() -> Result<(Security, Security), CliError> {
    let client = NewIdentity::generate("client", 1)?;
    let server = NewIdentity::generate("server", 1)?;
    let credentials = |own: &NewIdentity, peer: &NewIdentity| {
        Credentials::from_pem(own.certificate_pem(), own.key_pem(), peer.certificate_pem())
    };
    Ok((
        Security::Tls(credentials(&client, &server)?),
        Security::Tls(credentials(&server, &client)?),
    ))
}
