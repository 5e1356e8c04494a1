//! TLS sessions between parties that know each other's certificates: who is accepted, and what to tell a person when
//! somebody is not.

use std::sync::Arc;
use std::time::Duration;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms, ring};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{
    AlertDescription, CertificateError, ClientConfig, ClientConnection, DigitallySignedStruct,
    DistinguishedName, ServerConfig, ServerConnection, SignatureScheme, version,
};

use crate::error::NetError;
use crate::identity::{Certificate, Credentials, Held, Position};

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

/// For the party that listens.
pub(crate) fn listening_session(credentials: &Credentials) -> Result<ServerConnection, NetError> {
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

/// For the party that connects.
pub(crate) fn connecting_session(credentials: &Credentials) -> Result<ClientConnection, NetError> {
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
pub(crate) fn explain(error: &rustls::Error) -> String {
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
