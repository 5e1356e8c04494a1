//! TLS 1.3 with both parties authenticated by the certificates they gave each other.
//!
//! One rustls session serves both directions: a mutex round it is held while bytes are encrypted or decrypted, never
//! while a socket is read or written.
//!
//! The party that listens confirms a finished handshake with a first sign of life; the one that connects waits for
//! it, since in TLS 1.3 it would otherwise learn only later that its certificate was refused.

use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustls::Connection;

use crate::channel::Channel;
use crate::config::Config;
use crate::error::NetError;
use crate::frame::Header;
use crate::identity::Credentials;
use crate::pinned::{connecting_session, explain, listening_session};
use crate::queue::{CHUNK, Stop};
use crate::role::Role;
use crate::tcp::{SocketIn, SocketOut, socket_channel, split, stop};
use crate::transport::{Incoming, Outgoing, Shared};

/// What a time-out or hang-up while connecting is said to have awaited.
const HANDSHAKE: &str = "the TLS handshake";
/// Bytes read from the socket at once.
const READ: usize = 64 << 10;

/// Takes the listening side of the handshake.
pub(crate) fn accept(
    stream: TcpStream,
    role: Role,
    credentials: &Credentials,
    config: &Config,
) -> Result<Channel, NetError> {
    let mut session = Connection::from(listening_session(credentials)?);
    let deadline = Deadline::new(config);
    shake_hands(&mut session, &stream, &deadline)?;
    // Cannot fail: the session's buffer has room for it.
    let _ = session.writer().write_all(&Header::alive(false).to_bytes());
    send_pending(&mut session, &stream, &deadline)?;
    channel(session, stream, role, config)
}

/// Takes the connecting side of the handshake.
pub(crate) fn connect(
    stream: TcpStream,
    role: Role,
    credentials: &Credentials,
    config: &Config,
) -> Result<Channel, NetError> {
    let mut session = Connection::from(connecting_session(credentials)?);
    let deadline = Deadline::new(config);
    shake_hands(&mut session, &stream, &deadline)?;
    let confirmed = |session: &mut Connection| {
        session
            .process_new_packets()
            .is_ok_and(|state| state.plaintext_bytes_to_read() > 0)
    };
    while !confirmed(&mut session) {
        receive_some(&mut session, &stream, &deadline)?;
    }
    channel(session, stream, role, config)
}

fn channel(
    session: Connection,
    stream: TcpStream,
    role: Role,
    config: &Config,
) -> Result<Channel, NetError> {
    let session = Arc::new(Mutex::new(session));
    let (from, to) = split(stream)?;
    let inbox = TlsIn {
        socket: from,
        session: Arc::clone(&session),
        sealed: Span::new(READ),
        plain: Span::new(CHUNK),
    };
    let out = TlsOut {
        socket: to,
        session,
        sealed: Vec::with_capacity(CHUNK + (CHUNK >> 4)),
    };
    Ok(socket_channel(role, Box::new(inbox), Box::new(out), config))
}

/// The end of the time allowed for connecting.
struct Deadline {
    at: Instant,
    after: Duration,
}

impl Deadline {
    fn new(config: &Config) -> Deadline {
        Deadline {
            at: Instant::now() + config.patience(),
            after: config.patience(),
        }
    }

    /// Sets the socket's limits to what is left.
    fn apply(&self, stream: &TcpStream) -> Result<(), NetError> {
        let left = self.at.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(self.passed());
        }
        let limits = || {
            stream.set_read_timeout(Some(left))?;
            stream.set_write_timeout(Some(left))
        };
        limits().map_err(|error| self.failure(&error))
    }

    fn passed(&self) -> NetError {
        NetError::Timeout {
            awaited: HANDSHAKE,
            after: self.after,
        }
    }

    fn failure(&self, error: &io::Error) -> NetError {
        match stop(error) {
            Stop::Silent => self.passed(),
            Stop::Closed => NetError::Disconnected { awaited: HANDSHAKE },
            _ => NetError::Io {
                doing: HANDSHAKE,
                detail: error.to_string(),
            },
        }
    }
}

fn shake_hands(
    session: &mut Connection,
    stream: &TcpStream,
    deadline: &Deadline,
) -> Result<(), NetError> {
    while session.is_handshaking() {
        send_pending(session, stream, deadline)?;
        if session.is_handshaking() {
            receive_some(session, stream, deadline)?;
        }
    }
    send_pending(session, stream, deadline)
}

fn send_pending(
    session: &mut Connection,
    mut stream: &TcpStream,
    deadline: &Deadline,
) -> Result<(), NetError> {
    while session.wants_write() {
        deadline.apply(stream)?;
        match session.write_tls(&mut stream) {
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(reason_for_hanging_up(session, stream, deadline, &error)),
        }
    }
    Ok(())
}

/// The peer may have said what it dislikes before it hung up on our write.
fn reason_for_hanging_up(
    session: &mut Connection,
    stream: &TcpStream,
    deadline: &Deadline,
    error: &io::Error,
) -> NetError {
    loop {
        match receive_some(session, stream, deadline) {
            Ok(()) => {}
            Err(said @ NetError::Tls { .. }) => return said,
            Err(_) => return deadline.failure(error),
        }
    }
}

/// Waits for something to come and takes it into the session.
fn receive_some(
    session: &mut Connection,
    mut stream: &TcpStream,
    deadline: &Deadline,
) -> Result<(), NetError> {
    deadline.apply(stream)?;
    match session.read_tls(&mut stream) {
        Ok(0) => Err(NetError::Disconnected { awaited: HANDSHAKE }),
        Ok(_) => match session.process_new_packets() {
            Ok(_) => Ok(()),
            Err(error) => {
                tell(session, stream);
                Err(NetError::Tls {
                    detail: explain(&error),
                })
            }
        },
        Err(error) if error.kind() == ErrorKind::Interrupted => Ok(()),
        Err(error) => Err(deadline.failure(&error)),
    }
}

/// Lets the peer know why the handshake failed, as far as that is possible. Waits a moment for it to hang up, since
/// closing over unread bytes could destroy the message.
fn tell(session: &mut Connection, mut stream: &TcpStream) {
    const LINGER: Duration = Duration::from_millis(100);
    let mut scrap = [0; 4096];
    let _ = stream.set_write_timeout(Some(LINGER));
    let _ = stream.set_read_timeout(Some(LINGER));
    let _ = session.write_tls(&mut stream);
    let _ = stream.shutdown(std::net::Shutdown::Write);
    for _ in 0..64 {
        if !stream.read(&mut scrap).is_ok_and(|count| count > 0) {
            return;
        }
    }
}

type Session = Arc<Mutex<Connection>>;

fn lock(session: &Session) -> MutexGuard<'_, Connection> {
    session.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A buffer of which a stretch is filled.
struct Span {
    bytes: Vec<u8>,
    at: usize,
    end: usize,
}

impl Span {
    fn new(size: usize) -> Span {
        Span {
            bytes: vec![0; size],
            at: 0,
            end: 0,
        }
    }

    fn filled(&self) -> &[u8] {
        &self.bytes[self.at..self.end]
    }
}

struct TlsIn {
    socket: SocketIn,
    session: Session,
    /// As it came from the socket.
    sealed: Span,
    /// Decrypted, for headers and small messages.
    plain: Span,
}

impl TlsIn {
    /// Waits for plaintext and puts it into `out`.
    fn receive(&mut self, out: &mut [u8], patience: Duration) -> Result<usize, Stop> {
        loop {
            if let Some(count) = self.decrypt(out)? {
                return Ok(count);
            }
            self.sealed.at = 0;
            self.sealed.end = 0;
            self.sealed.end = self.socket.read(&mut self.sealed.bytes, patience)?;
        }
    }

    /// Decrypts what has come; nothing if that is not enough for a byte.
    fn decrypt(&mut self, out: &mut [u8]) -> Result<Option<usize>, Stop> {
        let mut session = lock(&self.session);
        let mut done = 0;
        loop {
            match session.reader().read(&mut out[done..]) {
                Ok(0) if done < out.len() => {
                    return if done > 0 {
                        Ok(Some(done))
                    } else {
                        Err(Stop::Closed)
                    };
                }
                Ok(count) => {
                    done += count;
                    if done == out.len() {
                        return Ok(Some(done));
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    let mut sealed = self.sealed.filled();
                    if sealed.is_empty() {
                        return Ok((done > 0).then_some(done));
                    }
                    let count = session
                        .read_tls(&mut sealed)
                        .map_err(|error| stop(&error))?;
                    self.sealed.at += count;
                    session
                        .process_new_packets()
                        .map_err(|error| Stop::Tls(explain(&error)))?;
                }
                Err(error) => return Err(stop(&error)),
            }
        }
    }
}

impl Incoming for TlsIn {
    fn available(&self) -> &[u8] {
        self.plain.filled()
    }

    fn consume(&mut self, count: usize) {
        self.plain.at += count;
    }

    fn fill(&mut self, patience: Duration) -> Result<(), Stop> {
        let mut plain = std::mem::take(&mut self.plain.bytes);
        let received = self.receive(&mut plain, patience);
        self.plain = Span {
            bytes: plain,
            at: 0,
            end: 0,
        };
        self.plain.end = received?;
        Ok(())
    }

    fn read(&mut self, out: &mut [u8], patience: Duration) -> Result<usize, Stop> {
        self.receive(out, patience)
    }

    fn linger(&mut self, patience: Duration) {
        self.socket.linger(patience);
    }
}

struct TlsOut {
    socket: SocketOut,
    session: Session,
    sealed: Vec<u8>,
}

impl TlsOut {
    fn seal(&mut self, bytes: &[u8]) -> Result<(), Stop> {
        self.sealed.clear();
        let mut session = lock(&self.session);
        session
            .writer()
            .write_all(bytes)
            .map_err(|error| stop(&error))?;
        while session.wants_write() {
            session
                .write_tls(&mut self.sealed)
                .map_err(|error| stop(&error))?;
        }
        Ok(())
    }
}

impl Outgoing for TlsOut {
    fn write(&mut self, bytes: &[u8], shared: &Shared) -> Result<(), Stop> {
        for part in bytes.chunks(CHUNK) {
            self.seal(part)?;
            self.socket.write(&self.sealed, shared)?;
        }
        // Also when there is nothing new: the socket may hold back some of the last.
        self.socket.write(&[], shared)
    }

    fn start(&mut self, bytes: &[u8], shared: &Shared) -> Result<bool, Stop> {
        self.seal(bytes)?;
        self.socket.start(&self.sealed, shared)
    }

    fn close(&mut self, shared: &Shared) {
        lock(&self.session).send_close_notify();
        if self.seal(&[]).is_ok() {
            // The peer may be gone already, and there is nobody to tell.
            let _ = self.socket.write(&self.sealed, shared);
        }
        self.socket.close(shared);
    }
}
