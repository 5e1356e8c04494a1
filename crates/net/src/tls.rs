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

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms, ring};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{
    AlertDescription, CertificateError, ClientConfig, ClientConnection, Connection,
    DigitallySignedStruct, DistinguishedName, ServerConfig, ServerConnection, SignatureScheme,
    version,
};

use crate::channel::Channel;
use crate::config::Config;
use crate::error::NetError;
use crate::frame::Header;
use crate::identity::{Certificate, Credentials, Held, Position};
use crate::queue::{CHUNK, Stop};
use crate::role::Role;
use crate::tcp::{SocketIn, SocketOut, socket_channel, split, stop};
use crate::transport::{Incoming, Outgoing, Shared};

/// What a time-out or hang-up while connecting is said to have awaited.
const HANDSHAKE: &str = "the TLS handshake";
/// Bytes read from the socket at once.
const READ: usize = 256 << 10;

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

/// AES-128-GCM first: it matches the security level of the protocols above and is the fastest.
fn provider() -> Arc<CryptoProvider> {
    use ring::cipher_suite::{
        TLS13_AES_128_GCM_SHA256, TLS13_AES_256_GCM_SHA384, TLS13_CHACHA20_POLY1305_SHA256,
    };
    let cipher_suites = vec![
        TLS13_AES_128_GCM_SHA256,
        TLS13_AES_256_GCM_SHA384,
        TLS13_CHACHA20_POLY1305_SHA256,
    ];
    Arc::new(CryptoProvider {
        cipher_suites,
        ..ring::default_provider()
    })
}

fn listening_session(credentials: &Credentials) -> Result<ServerConnection, NetError> {
    let provider = provider();
    let Held { own, key, peer } = credentials.held();
    let pinned = Pinned::new(peer, &provider);
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&version::TLS13])
        .map_err(|error| unusable(&error))?
        .with_client_cert_verifier(Arc::new(pinned))
        .with_single_cert(vec![own.der.clone()], key.clone_key())
        .map_err(|error| unusable(&error))?;
    // Sessions are never resumed, so every connection proves both certificates anew.
    config.send_tls13_tickets = 0;
    let mut session = ServerConnection::new(Arc::new(config)).map_err(|error| unusable(&error))?;
    session.set_buffer_limit(None);
    Ok(session)
}

fn connecting_session(credentials: &Credentials) -> Result<ClientConnection, NetError> {
    let provider = provider();
    let Held { own, key, peer } = credentials.held();
    let pinned = Pinned::new(peer, &provider);
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&version::TLS13])
        .map_err(|error| unusable(&error))?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(pinned))
        .with_client_auth_cert(vec![own.der.clone()], key.clone_key())
        .map_err(|error| unusable(&error))?;
    config.resumption = rustls::client::Resumption::disabled();
    config.enable_sni = false;
    // The peer is known by its certificate, whatever its name; rustls wants one all the same.
    let name = ServerName::try_from("volvelle").map_err(|error| NetError::Tls {
        detail: error.to_string(),
    })?;
    let mut session =
        ClientConnection::new(Arc::new(config), name).map_err(|error| unusable(&error))?;
    session.set_buffer_limit(None);
    Ok(session)
}

fn unusable(error: &rustls::Error) -> NetError {
    let detail = match error {
        rustls::Error::InconsistentKeys(_) => {
            "this party's key does not belong to its certificate; give the two that were made together".into()
        }
        other => format!("this party's certificate or key cannot be used: {other}"),
    };
    NetError::Tls { detail }
}

/// Accepts one certificate, within its period of validity.
#[derive(Debug)]
struct Pinned {
    peer: Certificate,
    algorithms: WebPkiSupportedAlgorithms,
}

impl Pinned {
    fn new(peer: &Certificate, provider: &CryptoProvider) -> Pinned {
        Pinned {
            peer: peer.clone(),
            algorithms: provider.signature_verification_algorithms,
        }
    }

    fn verify(&self, presented: &CertificateDer<'_>, now: UnixTime) -> Result<(), rustls::Error> {
        let refusal = if presented != &self.peer.der {
            CertificateError::UnknownIssuer
        } else {
            match self
                .peer
                .period
                .position(std::time::UNIX_EPOCH + Duration::from_secs(now.as_secs()))
            {
                Position::Before => CertificateError::NotValidYet,
                Position::Within => return Ok(()),
                Position::After => CertificateError::Expired,
            }
        };
        Err(refusal.into())
    }

    fn verify_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls13_signature(message, certificate, signature, &self.algorithms)
    }
}

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        self.verify(end_entity, now)
            .map(|()| ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _message: &[u8],
        _certificate: &CertificateDer<'_>,
        _signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Err(rustls::Error::General("TLS 1.2 is not offered".into()))
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.verify_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

impl ClientCertVerifier for Pinned {
    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        self.verify(end_entity, now)
            .map(|()| ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        ServerCertVerifier::verify_tls12_signature(self, message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.verify_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

/// What a failure of TLS means, for the person at this end.
fn explain(error: &rustls::Error) -> String {
    use AlertDescription as Alert;
    match error {
        rustls::Error::InvalidCertificate(reason) => match reason {
            CertificateError::UnknownIssuer => {
                "the peer's certificate is not the one given for it; give this party the certificate file the peer uses"
                    .into()
            }
            CertificateError::Expired => "the peer's certificate has expired; it needs a new one".into(),
            CertificateError::NotValidYet => "the peer's certificate is not valid yet; check both clocks".into(),
            other => format!("the peer's certificate is not acceptable: {other}"),
        },
        rustls::Error::NoCertificatesPresented | rustls::Error::AlertReceived(Alert::CertificateRequired) => {
            "a certificate is required; start both parties with certificates".into()
        }
        rustls::Error::AlertReceived(Alert::UnknownCA | Alert::AccessDenied | Alert::BadCertificate) => {
            "the peer does not accept this party's certificate; give the peer the certificate file this party uses"
                .into()
        }
        rustls::Error::AlertReceived(Alert::CertificateExpired) => {
            "the peer refuses this party's certificate as expired or not yet valid; check both clocks or make a new one"
                .into()
        }
        rustls::Error::AlertReceived(alert) => format!("the peer broke off the TLS session ({alert:?})"),
        rustls::Error::InvalidMessage(_) => {
            "the peer does not speak TLS; start both parties with TLS, or both with plain TCP".into()
        }
        rustls::Error::DecryptError => "a record was damaged or forged on its way".into(),
        other => other.to_string(),
    }
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

#[cfg(test)]
mod tests {
    use std::time::SystemTime;

    use super::*;
    use crate::identity::NewIdentity;

    /// What the verifier says of a certificate valid for an hour from now, so many minutes from now.
    fn verdict(minutes: i64) -> Result<(), rustls::Error> {
        let now = SystemTime::now();
        let identity =
            NewIdentity::generate_for("test", now, now + Duration::from_secs(3600)).unwrap();
        let peer = Certificate::parse("test", identity.certificate_pem().as_bytes()).unwrap();
        let since = now
            .duration_since(std::time::UNIX_EPOCH)
            .unwrap()
            .as_secs()
            .saturating_add_signed(minutes * 60);
        Pinned::new(&peer, &provider()).verify(
            &peer.der,
            UnixTime::since_unix_epoch(Duration::from_secs(since)),
        )
    }

    #[test]
    fn certificates_are_refused_outside_their_period_while_connecting() {
        assert_eq!(verdict(30), Ok(()));
        assert_eq!(verdict(-2), Err(CertificateError::NotValidYet.into()));
        assert_eq!(verdict(62), Err(CertificateError::Expired.into()));
        let told = explain(&verdict(62).unwrap_err());
        assert!(told.contains("has expired"), "{told}");
    }

    #[test]
    fn another_certificate_is_refused_whatever_it_says() {
        let make = || NewIdentity::generate("same name", 1).unwrap();
        let [one, other] = [make(), make()].map(|identity| {
            Certificate::parse("test", identity.certificate_pem().as_bytes()).unwrap()
        });
        let verdict = Pinned::new(&one, &provider()).verify(&other.der, UnixTime::now());
        assert_eq!(verdict, Err(CertificateError::UnknownIssuer.into()));
    }
}
