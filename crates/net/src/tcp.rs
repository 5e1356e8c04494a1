//! Sockets: listening, connecting, and the plain TCP transport.
//!
//! Plain TCP hides nothing and authenticates nobody; [`Security::Plain`] exists for measuring and for networks that
//! are secured otherwise.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::channel::{Channel, Parts};
use crate::config::Config;
use crate::error::NetError;
use crate::identity::Credentials;
use crate::outbox::Outbox;
use crate::queue::{CHUNK, SPIN, Stop};
use crate::role::Role;
use crate::tls;
use crate::transport::{Incoming, Outgoing, Shared};

/// How the bytes on a socket are protected.
#[derive(Clone, Debug)]
pub enum Security {
    /// Not at all.
    Plain,
    /// TLS 1.3, each party knowing the other's certificate.
    Tls(Credentials),
}

/// A port on which the peer may connect.
#[derive(Debug)]
pub struct Listener {
    socket: TcpListener,
    address: SocketAddr,
}

impl Listener {
    /// Listens on `address`, such as `0.0.0.0:7000`; port 0 lets the system choose.
    ///
    /// # Errors
    /// [`NetError::Address`], if the port is in use for example.
    pub fn bind(address: &str) -> Result<Listener, NetError> {
        let refuse = |detail: String| NetError::Address {
            action: "listen on",
            address: address.to_owned(),
            detail,
        };
        let candidates = resolve(address).map_err(refuse)?;
        let socket =
            TcpListener::bind(&candidates[..]).map_err(|error| refuse(bind_advice(&error)))?;
        let address = socket
            .local_addr()
            .map_err(|error| refuse(error.to_string()))?;
        Ok(Listener { socket, address })
    }

    /// The address listened on, with the port the system chose.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// Waits for the peer to connect, for at most `wait` if given, and takes this role towards it. After an error the
    /// next peer can be accepted.
    ///
    /// # Errors
    /// If nobody comes, or somebody who does not pass or does not finish the TLS handshake.
    pub fn accept(
        &self,
        role: Role,
        security: &Security,
        config: &Config,
        wait: Option<Duration>,
    ) -> Result<Channel, NetError> {
        self.arrival(wait)?.accept(role, security, config)
    }

    /// Waits for somebody to connect, for at most `wait` if given. Nothing is said to them yet: that can be done on
    /// another thread, so that one who does not answer keeps nobody else waiting.
    ///
    /// # Errors
    /// If nobody comes.
    pub fn arrival(&self, wait: Option<Duration>) -> Result<Arrival, NetError> {
        self.next_stream(wait).map(Arrival)
    }

    fn next_stream(&self, wait: Option<Duration>) -> Result<TcpStream, NetError> {
        const PAUSE: Duration = Duration::from_millis(2);
        let deadline = wait.map(|wait| (Instant::now() + wait, wait));
        self.socket
            .set_nonblocking(deadline.is_some())
            .map_err(|e| failed("listening", &e))?;
        loop {
            match (self.socket.accept(), deadline) {
                (Ok((stream, _)), _) => return Ok(stream),
                (Err(error), Some((deadline, after))) if error.kind() == ErrorKind::WouldBlock => {
                    if Instant::now() >= deadline {
                        return Err(NetError::Timeout {
                            awaited: "a connection",
                            after,
                        });
                    }
                    std::thread::sleep(PAUSE);
                }
                // The connection was gone again before it could be taken.
                (Err(error), _)
                    if matches!(
                        error.kind(),
                        ErrorKind::ConnectionAborted | ErrorKind::Interrupted
                    ) => {}
                (Err(error), _) => return Err(failed("accepting a connection", &error)),
            }
        }
    }
}

/// Somebody who has connected and is yet to be talked to.
#[derive(Debug)]
pub struct Arrival(TcpStream);

impl Arrival {
    /// Takes this role towards them.
    ///
    /// # Errors
    /// If they do not pass or do not finish the TLS handshake.
    pub fn accept(
        self,
        role: Role,
        security: &Security,
        config: &Config,
    ) -> Result<Channel, NetError> {
        let Arrival(stream) = self;
        prepare(&stream)?;
        match security {
            Security::Plain => plain_channel(stream, role, config),
            Security::Tls(credentials) => tls::accept(stream, role, credentials, config),
        }
    }
}

/// Connects to a listening peer and takes this role towards it. Tries again while nobody listens there, until the
/// time limit.
///
/// # Errors
/// If the address is unknown, nobody listens in time, or the peer does not pass or finish the TLS handshake.
pub fn connect(
    address: &str,
    role: Role,
    security: &Security,
    config: &Config,
) -> Result<Channel, NetError> {
    let stream = connect_stream(address, config.patience())?;
    prepare(&stream)?;
    match security {
        Security::Plain => plain_channel(stream, role, config),
        Security::Tls(credentials) => tls::connect(stream, role, credentials, config),
    }
}

fn connect_stream(address: &str, patience: Duration) -> Result<TcpStream, NetError> {
    const PAUSE: Duration = Duration::from_millis(20);
    let refuse = |detail: String| NetError::Address {
        action: "connect to",
        address: address.to_owned(),
        detail,
    };
    let deadline = Instant::now() + patience;
    let candidates = resolve(address).map_err(refuse)?;
    let mut last = ErrorKind::TimedOut.into();
    loop {
        for candidate in &candidates {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(refuse(connect_advice(&last, patience)));
            }
            match TcpStream::connect_timeout(candidate, left) {
                // A port of our own range can connect to itself when nobody listens there.
                Ok(stream) if stream.local_addr().ok() == stream.peer_addr().ok() => {}
                Ok(stream) => return Ok(stream),
                Err(error) => last = error,
            }
        }
        std::thread::sleep(PAUSE.min(deadline.saturating_duration_since(Instant::now())));
    }
}

fn resolve(address: &str) -> Result<Vec<SocketAddr>, String> {
    let advice = "give a host and a port, such as 127.0.0.1:7000";
    let found: Vec<_> = address
        .to_socket_addrs()
        .map_err(|error| format!("{error}; {advice}"))?
        .collect();
    if found.is_empty() {
        Err(format!("the name has no address; {advice}"))
    } else {
        Ok(found)
    }
}

fn bind_advice(error: &io::Error) -> String {
    match error.kind() {
        ErrorKind::AddrInUse => {
            "the port is in use; stop the program that uses it or choose another port".into()
        }
        ErrorKind::PermissionDenied => "not permitted; choose a port of 1024 or above".into(),
        ErrorKind::AddrNotAvailable => {
            "this machine has no such address; try 0.0.0.0 or 127.0.0.1".into()
        }
        _ => error.to_string(),
    }
}

fn connect_advice(error: &io::Error, patience: Duration) -> String {
    let seconds = patience.as_secs_f64();
    match error.kind() {
        ErrorKind::ConnectionRefused => {
            format!(
                "nobody listened there for {seconds} s; start the other party and check address and port"
            )
        }
        ErrorKind::TimedOut => {
            format!("no answer for {seconds} s; check the address and any firewall between")
        }
        _ => error.to_string(),
    }
}

fn prepare(stream: &TcpStream) -> Result<(), NetError> {
    let options = || {
        stream.set_nonblocking(false)?;
        // Messages are gathered here, and a round trip must not wait for the kernel to gather more.
        stream.set_nodelay(true)
    };
    options().map_err(|error| failed("setting up the connection", &error))
}

fn plain_channel(stream: TcpStream, role: Role, config: &Config) -> Result<Channel, NetError> {
    let (from, to) = split(stream)?;
    Ok(socket_channel(
        role,
        Box::new(PlainIn::new(from)),
        Box::new(to),
        config,
    ))
}

/// A channel over the halves of a socket, with signs of life while idle.
pub(crate) fn socket_channel(
    role: Role,
    inbox: Box<dyn Incoming>,
    out: Box<dyn Outgoing>,
    config: &Config,
) -> Channel {
    let shared = Arc::new(Shared::default());
    let outbox = Outbox::threaded(out, &shared, config, Some(config.heartbeat()));
    Channel::new(Parts {
        role,
        outbox,
        inbox,
        shared,
        config: *config,
    })
}

/// The two halves of a connected socket.
pub(crate) fn split(stream: TcpStream) -> Result<(SocketIn, SocketOut), NetError> {
    let doing = "setting up the connection";
    let other = stream.try_clone().map_err(|error| failed(doing, &error))?;
    other
        .set_write_timeout(Some(WRITE_SLICE))
        .map_err(|error| failed(doing, &error))?;
    Ok((
        SocketIn {
            stream,
            patience: None,
        },
        SocketOut {
            stream: other,
            held: Vec::new(),
        },
    ))
}

/// How long a write may block before the writer thread looks whether to give up.
const WRITE_SLICE: Duration = Duration::from_millis(100);

fn failed(doing: &'static str, error: &io::Error) -> NetError {
    NetError::Io {
        doing,
        detail: error.to_string(),
    }
}

/// What an error of the socket means to a channel.
pub(crate) fn stop(error: &io::Error) -> Stop {
    match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::TimedOut => Stop::Silent,
        ErrorKind::ConnectionReset
        | ErrorKind::ConnectionAborted
        | ErrorKind::BrokenPipe
        | ErrorKind::NotConnected
        | ErrorKind::UnexpectedEof => Stop::Closed,
        _ => Stop::Failed(error.to_string()),
    }
}

/// The reading half of a socket.
pub(crate) struct SocketIn {
    stream: TcpStream,
    /// The time limit set on the socket.
    patience: Option<Duration>,
}

impl SocketIn {
    /// Waits for bytes; `Closed` at the end of the stream.
    pub(crate) fn read(&mut self, out: &mut [u8], patience: Duration) -> Result<usize, Stop> {
        if self.patience != Some(patience) {
            self.stream
                .set_read_timeout(Some(patience))
                .map_err(|error| stop(&error))?;
            self.patience = Some(patience);
        }
        if let Some(count) = self.look_for(out)? {
            return Ok(count);
        }
        loop {
            match self.stream.read(out) {
                Ok(0) => return Err(Stop::Closed),
                Ok(count) => return Ok(count),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(stop(&error)),
            }
        }
    }

    /// Looks for bytes for a moment before sleeping over them: to be woken takes longer than most answers do.
    #[cfg(unix)]
    fn look_for(&mut self, out: &mut [u8]) -> Result<Option<usize>, Stop> {
        use rustix::net::{RecvFlags, recv};
        let start = Instant::now();
        loop {
            match recv(&self.stream, &mut *out, RecvFlags::DONTWAIT) {
                Ok((_, 0)) => return Err(Stop::Closed),
                Ok((_, count)) => return Ok(Some(count)),
                Err(rustix::io::Errno::INTR) => {}
                Err(error) => match stop(&error.into()) {
                    Stop::Silent => {}
                    stop => return Err(stop),
                },
            }
            if start.elapsed() >= SPIN {
                return Ok(None);
            }
            std::thread::yield_now();
        }
    }

    #[cfg(not(unix))]
    fn look_for(&mut self, _out: &mut [u8]) -> Result<Option<usize>, Stop> {
        Ok(None)
    }

    /// See [`Incoming::linger`].
    pub(crate) fn linger(&mut self, patience: Duration) {
        let deadline = Instant::now() + patience;
        let mut scrap = vec![0; CHUNK];
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            if left < Duration::from_millis(1) || self.read(&mut scrap, left).is_err() {
                return;
            }
        }
    }
}

/// The writing half of a socket.
pub(crate) struct SocketOut {
    stream: TcpStream,
    /// Taken by `start` but not yet written.
    held: Vec<u8>,
}

impl SocketOut {
    fn write_all(&mut self, mut bytes: &[u8], shared: &Shared) -> Result<(), Stop> {
        while !bytes.is_empty() {
            match self.stream.write(bytes) {
                Ok(0) => return Err(Stop::Closed),
                Ok(count) => bytes = &bytes[count..],
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => match stop(&error) {
                    // A peer that computes need not read; whether it lives shows in what it sends.
                    Stop::Silent if !shared.gave_up() => {}
                    stop => return Err(stop),
                },
            }
        }
        Ok(())
    }

    #[cfg(unix)]
    fn write_some(&mut self, bytes: &[u8]) -> Result<usize, Stop> {
        use rustix::net::{SendFlags, send};
        match send(
            &self.stream,
            bytes,
            SendFlags::DONTWAIT | SendFlags::NOSIGNAL,
        ) {
            Ok(count) => Ok(count),
            Err(error) => match stop(&error.into()) {
                Stop::Silent => Ok(0),
                Stop::Failed(_) if error == rustix::io::Errno::INTR => Ok(0),
                stop => Err(stop),
            },
        }
    }

    /// Elsewhere everything is left to the writer thread.
    #[cfg(not(unix))]
    fn write_some(&mut self, _bytes: &[u8]) -> Result<usize, Stop> {
        Ok(0)
    }
}

impl Outgoing for SocketOut {
    fn write(&mut self, bytes: &[u8], shared: &Shared) -> Result<(), Stop> {
        let held = std::mem::take(&mut self.held);
        self.write_all(&held, shared)?;
        self.write_all(bytes, shared)
    }

    fn start(&mut self, bytes: &[u8], _shared: &Shared) -> Result<bool, Stop> {
        let count = if self.held.is_empty() {
            self.write_some(bytes)?
        } else {
            0
        };
        self.held.extend_from_slice(&bytes[count..]);
        Ok(self.held.is_empty())
    }

    fn close(&mut self, _shared: &Shared) {
        // The socket may be gone already, and there is nobody to tell.
        let _ = self.stream.shutdown(std::net::Shutdown::Write);
    }
}

/// Plain TCP, with a buffer for headers and small messages.
struct PlainIn {
    socket: SocketIn,
    buffer: Vec<u8>,
    at: usize,
    end: usize,
}

impl PlainIn {
    fn new(socket: SocketIn) -> PlainIn {
        PlainIn {
            socket,
            buffer: vec![0; CHUNK],
            at: 0,
            end: 0,
        }
    }
}

impl Incoming for PlainIn {
    fn available(&self) -> &[u8] {
        &self.buffer[self.at..self.end]
    }

    fn consume(&mut self, count: usize) {
        self.at += count;
    }

    fn fill(&mut self, patience: Duration) -> Result<(), Stop> {
        self.at = 0;
        self.end = 0;
        self.end = self.socket.read(&mut self.buffer, patience)?;
        Ok(())
    }

    fn read(&mut self, out: &mut [u8], patience: Duration) -> Result<usize, Stop> {
        self.socket.read(out, patience)
    }

    fn linger(&mut self, patience: Duration) {
        self.socket.linger(patience);
    }
}
