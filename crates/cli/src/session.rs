//! Connecting two parties and making sure that they are about to do the same thing.

use std::path::{Path, PathBuf};
use std::time::Duration;

use volvelle_net::{
    Channel, Config, Credentials, Handshake, Listener, NetError, NewIdentity, Role, Security,
    connect, memory_pair_with,
};

use crate::args::{BenchArgs, PeerArgs, Transport};
use crate::digits::fixed::{FRAC, RING_BITS, W1_BITS, W2_BITS};
use crate::digits::{CLASSES, HIDDEN, PIXELS};
use crate::error::CliError;

/// Time limit between the parties of a bench, which may compute for long between two messages.
const BENCH_TIMEOUT: Duration = Duration::from_secs(600);

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
        (Some(identity), Some(peer_cert)) => {
            let credentials =
                Credentials::load(&certificate_path(identity), &key_path(identity), peer_cert)?;
            Ok(Security::Tls(credentials))
        }
        _ => Ok(Security::Plain),
    }
}

/// Time limit and link.
pub fn config(peer: &PeerArgs) -> Config {
    Config::new()
        .timeout(Duration::from_secs(peer.timeout.into()))
        .link(peer.link)
}

/// What both parties of a classification must agree on.
pub fn handshake(batch: u32) -> Handshake {
    Handshake::new()
        .parameter("task", "digits")
        .parameter("network", format!("{PIXELS}-{HIDDEN}-{CLASSES} gelu"))
        .parameter("ring bits", RING_BITS)
        .parameter("fraction bits", FRAC)
        .parameter("weight bits", format!("{W1_BITS} {W2_BITS}"))
        .parameter("batch", batch)
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
            // A peer that has given up or is gone need not be told.
            if !matches!(
                error,
                CliError::Net(NetError::PeerAborted { .. } | NetError::Disconnected { .. })
            ) {
                channel.abort(&error.to_string());
            }
            Err(error)
        }
    }
}

/// Client and server ends of the lanes of a bench, all in this process.
///
/// # Errors
/// If the transport cannot be set up.
pub fn local_pairs(bench: &BenchArgs) -> Result<Vec<(Channel, Channel)>, CliError> {
    let config = Config::new().timeout(BENCH_TIMEOUT).link(bench.link);
    let (client, server) = match bench.transport {
        Transport::Memory => {
            return Ok((0..bench.threads)
                .map(|_| memory_pair_with(&config))
                .collect());
        }
        Transport::Tcp => (Security::Plain, Security::Plain),
        Transport::Tls => throw_away_credentials()?,
    };
    let listener = Listener::bind("127.0.0.1:0")?;
    let address = listener.local_addr().to_string();
    let pair = || -> Result<(Channel, Channel), CliError> {
        std::thread::scope(|scope| {
            let accepted = scope
                .spawn(|| listener.accept(Role::Server, &server, &config, Some(BENCH_TIMEOUT)));
            let connected = connect(&address, Role::Client, &client, &config)?;
            let accepted = accepted
                .join()
                .unwrap_or_else(|e| std::panic::resume_unwind(e))?;
            Ok((connected, accepted))
        })
    };
    (0..bench.threads).map(|_| pair()).collect()
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
