//! Who is who: certificates and private keys in files.
//!
//! There is no certificate authority. Each party makes an identity for itself (a self-signed certificate and its
//! key), gives the certificate to the other by a way both trust, and accepts exactly that certificate, within its
//! period of validity, from a peer that proves to hold its key.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use sha2::{Digest, Sha256};
use x509_cert::der::Decode;
use zeroize::{Zeroize, Zeroizing};

use crate::error::NetError;

/// Longest certificate or key file read.
const MAX_FILE: u64 = 64 << 10;
/// A new certificate is valid from this much before it was made, for peers whose clock is behind.
const CLOCK_SLACK: Duration = Duration::from_secs(3600);
const DAY: Duration = Duration::from_secs(24 * 3600);

/// A certificate and private key just made.
pub struct NewIdentity {
    certificate: String,
    key: Zeroizing<String>,
}

impl NewIdentity {
    /// Makes an identity that is valid from now on for this many days. The name is for people to read.
    ///
    /// # Errors
    /// [`NetError::Identity`] if the name cannot be put into a certificate.
    pub fn generate(name: &str, days: u32) -> Result<NewIdentity, NetError> {
        let now = SystemTime::now();
        NewIdentity::generate_for(name, now - CLOCK_SLACK, now + DAY * days)
    }

    /// As [`NewIdentity::generate`], for any period.
    ///
    /// # Errors
    /// As [`NewIdentity::generate`].
    pub fn generate_for(
        name: &str,
        from: SystemTime,
        until: SystemTime,
    ) -> Result<NewIdentity, NetError> {
        let refuse =
            |error: rcgen::Error| problem(name, format!("cannot make a certificate: {error}"));
        let key = rcgen::KeyPair::generate_for(&rcgen::PKCS_ED25519).map_err(refuse)?;
        let mut params = rcgen::CertificateParams::new(Vec::new()).map_err(refuse)?;
        params
            .distinguished_name
            .push(rcgen::DnType::CommonName, name);
        params.not_before = from.into();
        params.not_after = until.into();
        let certificate = params.self_signed(&key).map_err(refuse)?;
        Ok(NewIdentity {
            certificate: certificate.pem(),
            key: Zeroizing::new(key.serialize_pem()),
        })
    }

    /// The certificate, to give to the peer.
    #[must_use]
    pub fn certificate_pem(&self) -> &str {
        &self.certificate
    }

    /// The private key, to give to nobody.
    #[must_use]
    pub fn key_pem(&self) -> &str {
        &self.key
    }

    /// Writes both files, the key for its owner's eyes only. Existing files are not touched.
    ///
    /// # Errors
    /// [`NetError::Identity`] if one of the files exists or cannot be written.
    pub fn save(&self, certificate: &Path, key: &Path) -> Result<(), NetError> {
        for path in [certificate, key] {
            if path.symlink_metadata().is_ok() {
                return Err(problem(
                    path.display(),
                    "exists already; remove it or choose another name",
                ));
            }
        }
        create(key, 0o600, self.key.as_bytes())?;
        create(certificate, 0o644, self.certificate.as_bytes()).inspect_err(|_| {
            // A key without its certificate is of no use and would be in the way of a second attempt.
            let _ = fs::remove_file(key);
        })
    }
}

impl fmt::Debug for NewIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NewIdentity")
            .field("certificate", &self.certificate)
            .finish_non_exhaustive()
    }
}

/// What a party needs for TLS: its own certificate and key, and the peer's certificate.
/// Cloning is cheap.
#[derive(Clone)]
pub struct Credentials(Arc<Held>);

/// What [`Credentials`] holds.
pub(crate) struct Held {
    pub(crate) own: Certificate,
    pub(crate) key: PrivateKeyDer<'static>,
    pub(crate) peer: Certificate,
}

impl Credentials {
    /// Reads the three files.
    ///
    /// # Errors
    /// [`NetError::Identity`] naming the file that is missing, malformed, expired, or, for the key, readable by other
    /// users.
    pub fn load(
        own_certificate: &Path,
        own_key: &Path,
        peer_certificate: &Path,
    ) -> Result<Credentials, NetError> {
        let own = Certificate::parse(
            &own_certificate.display().to_string(),
            &read(own_certificate)?,
        )?;
        check_private(own_key)?;
        let key = parse_key(&own_key.display().to_string(), &read(own_key)?)?;
        let peer = Certificate::parse(
            &peer_certificate.display().to_string(),
            &read(peer_certificate)?,
        )?;
        Credentials::checked(Held { own, key, peer })
    }

    /// As [`Credentials::load`], from the files' contents.
    ///
    /// # Errors
    /// As [`Credentials::load`].
    pub fn from_pem(
        own_certificate: &str,
        own_key: &str,
        peer_certificate: &str,
    ) -> Result<Credentials, NetError> {
        let own = Certificate::parse("own certificate", own_certificate.as_bytes())?;
        let key = parse_key("own key", own_key.as_bytes())?;
        let peer = Certificate::parse("peer's certificate", peer_certificate.as_bytes())?;
        Credentials::checked(Held { own, key, peer })
    }

    /// SHA-256 of this party's certificate, in hexadecimal: what to compare by telephone.
    #[must_use]
    pub fn fingerprint(&self) -> String {
        self.0.own.fingerprint()
    }

    /// SHA-256 of the peer's certificate, in hexadecimal.
    #[must_use]
    pub fn peer_fingerprint(&self) -> String {
        self.0.peer.fingerprint()
    }

    fn checked(held: Held) -> Result<Credentials, NetError> {
        let now = SystemTime::now();
        held.own.check_period(now)?;
        held.peer.check_period(now)?;
        Ok(Credentials(Arc::new(held)))
    }

    pub(crate) fn held(&self) -> &Held {
        &self.0
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.key.zeroize();
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials")
            .field("own", &self.fingerprint())
            .field("peer", &self.peer_fingerprint())
            .finish_non_exhaustive()
    }
}

/// A certificate and what is read off it.
#[derive(Clone, Debug)]
pub(crate) struct Certificate {
    pub(crate) der: CertificateDer<'static>,
    pub(crate) period: Period,
    source: String,
}

impl Certificate {
    pub(crate) fn parse(source: &str, pem: &[u8]) -> Result<Certificate, NetError> {
        let malformed =
            |detail: String| problem(source, format!("not a certificate in PEM form ({detail})"));
        let der =
            CertificateDer::from_pem_slice(pem).map_err(|error| malformed(error.to_string()))?;
        let parsed =
            x509_cert::Certificate::from_der(&der).map_err(|error| malformed(error.to_string()))?;
        let validity = parsed.tbs_certificate().validity();
        let period = Period {
            from: validity.not_before.to_system_time(),
            until: validity.not_after.to_system_time(),
            from_text: validity.not_before.to_string(),
            until_text: validity.not_after.to_string(),
        };
        Ok(Certificate {
            der,
            period,
            source: source.to_owned(),
        })
    }

    fn check_period(&self, now: SystemTime) -> Result<(), NetError> {
        match self.period.position(now) {
            Position::Before => {
                let from = &self.period.from_text;
                Err(problem(
                    &self.source,
                    format!("this certificate is not valid before {from}; check the clock"),
                ))
            }
            Position::Within => Ok(()),
            Position::After => {
                let until = &self.period.until_text;
                let advice = "make a new one with `volvelle keygen`";
                Err(problem(
                    &self.source,
                    format!("this certificate expired at {until}; {advice}"),
                ))
            }
        }
    }

    fn fingerprint(&self) -> String {
        Sha256::digest(&self.der)
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect()
    }
}

/// When a certificate is valid, both ends included.
#[derive(Clone, Debug)]
pub(crate) struct Period {
    from: SystemTime,
    until: SystemTime,
    from_text: String,
    until_text: String,
}

/// Where a moment lies relative to a period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Position {
    Before,
    Within,
    After,
}

impl Period {
    pub(crate) fn position(&self, now: SystemTime) -> Position {
        if now < self.from {
            Position::Before
        } else if now > self.until {
            Position::After
        } else {
            Position::Within
        }
    }
}

fn problem(path: impl fmt::Display, detail: impl Into<String>) -> NetError {
    NetError::Identity {
        path: path.to_string(),
        detail: detail.into(),
    }
}

fn parse_key(source: &str, pem: &[u8]) -> Result<PrivateKeyDer<'static>, NetError> {
    PrivateKeyDer::from_pem_slice(pem)
        .map_err(|error| problem(source, format!("not a private key in PEM form ({error})")))
}

fn read(path: &Path) -> Result<Zeroizing<Vec<u8>>, NetError> {
    let fail = |error: std::io::Error| {
        let advice = match error.kind() {
            std::io::ErrorKind::NotFound => "; `volvelle keygen` makes certificates and keys",
            _ => "",
        };
        problem(path.display(), format!("cannot read it: {error}{advice}"))
    };
    let mut content = Zeroizing::new(Vec::with_capacity(8 << 10));
    File::open(path)
        .map_err(fail)?
        .take(MAX_FILE + 1)
        .read_to_end(&mut content)
        .map_err(fail)?;
    if content.len() as u64 > MAX_FILE {
        return Err(problem(
            path.display(),
            "longer than any certificate or key",
        ));
    }
    Ok(content)
}

fn create(path: &Path, mode: u32, content: &[u8]) -> Result<(), NetError> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, mode);
    #[cfg(not(unix))]
    let _ = mode;
    let write = || {
        let mut file = options.open(path)?;
        file.write_all(content)?;
        file.sync_all()
    };
    write().map_err(|error: std::io::Error| {
        problem(path.display(), format!("cannot write it: {error}"))
    })
}

/// Refuses a key that other users of this machine can read.
fn check_private(path: &Path) -> Result<(), NetError> {
    #[cfg(unix)]
    if let Ok(metadata) = path.metadata() {
        let mode = std::os::unix::fs::MetadataExt::mode(&metadata);
        if mode & 0o077 != 0 {
            let shown = path.display();
            return Err(problem(
                &shown,
                format!("other users may read this key; run `chmod 600 {shown}`"),
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(from: i64, until: i64) -> NewIdentity {
        let at = |days: i64| {
            let offset = DAY * u32::try_from(days.unsigned_abs()).unwrap();
            if days < 0 {
                SystemTime::now() - offset
            } else {
                SystemTime::now() + offset
            }
        };
        NewIdentity::generate_for("test", at(from), at(until)).unwrap()
    }

    #[test]
    fn files_are_private_and_never_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let (certificate, key) = (folder.path().join("a.crt"), folder.path().join("a.key"));
        let identity = NewIdentity::generate("a", 30).unwrap();
        identity.save(&certificate, &key).unwrap();
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            assert_eq!(key.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        }
        let refused = identity
            .save(&certificate, &folder.path().join("b.key"))
            .unwrap_err()
            .to_string();
        assert!(refused.contains("a.crt: exists already"), "{refused}");
        assert!(!folder.path().join("b.key").exists());
        Credentials::load(&certificate, &key, &certificate).unwrap();
    }

    #[cfg(unix)]
    #[test]
    fn keys_others_can_read_are_refused() {
        use std::os::unix::fs::PermissionsExt;
        let folder = tempfile::tempdir().unwrap();
        let (certificate, key) = (folder.path().join("a.crt"), folder.path().join("a.key"));
        NewIdentity::generate("a", 30)
            .unwrap()
            .save(&certificate, &key)
            .unwrap();
        fs::set_permissions(&key, fs::Permissions::from_mode(0o644)).unwrap();
        let refused = Credentials::load(&certificate, &key, &certificate)
            .unwrap_err()
            .to_string();
        assert!(refused.contains("chmod 600"), "{refused}");
    }

    #[test]
    fn missing_malformed_and_swapped_files_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let (certificate, key) = (folder.path().join("a.crt"), folder.path().join("a.key"));
        let missing = Credentials::load(&certificate, &key, &certificate)
            .unwrap_err()
            .to_string();
        assert!(
            missing.contains("a.crt: cannot read it") && missing.contains("keygen"),
            "{missing}"
        );
        NewIdentity::generate("a", 30)
            .unwrap()
            .save(&certificate, &key)
            .unwrap();
        let swapped = Credentials::load(&key, &key, &certificate)
            .unwrap_err()
            .to_string();
        assert!(swapped.contains("a.key: not a certificate"), "{swapped}");
        let torn = fs::read_to_string(&certificate)
            .unwrap()
            .replace("MII", "AAA")
            .replace("MIH", "AAA");
        let malformed = Credentials::from_pem(&torn, "", "")
            .unwrap_err()
            .to_string();
        assert!(malformed.contains("not a certificate"), "{malformed}");
    }

    #[test]
    fn certificates_outside_their_period_are_refused() {
        let good = made(-1, 1);
        for (from, until, word) in [(-9, -2, "expired at"), (2, 9, "not valid before")] {
            let bad = made(from, until);
            let own = Credentials::from_pem(&bad.certificate, &bad.key, &good.certificate);
            let peers = Credentials::from_pem(&good.certificate, &good.key, &bad.certificate);
            for refused in [own, peers] {
                let refused = refused.unwrap_err().to_string();
                assert!(refused.contains(word), "{refused}");
            }
        }
    }

    #[test]
    fn secrets_are_not_printed() {
        let identity = made(-1, 1);
        let secret = identity.key.lines().nth(1).unwrap();
        assert!(!format!("{identity:?}").contains(secret));
    }
}
