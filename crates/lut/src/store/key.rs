//! Keys of a store: what a party holds, and what is derived from it.

use chacha20poly1305::{AeadInOut, KeyInit, Tag, XChaCha20Poly1305, XNonce};
use sha2::{Digest, Sha256};
use volvelle_prim::Prg;
use zeroize::Zeroizing;

use super::error::StoreError;

pub(super) const KEY: usize = 32;
pub(super) const NONCE: usize = 24;
pub(super) const TAG: usize = 16;
pub(super) const SALT: usize = 32;

/// Argon2id's cost, the second choice of RFC 9106: 64 MiB, three passes. A security parameter, fixed by the
/// format's version.
const PASSPHRASE_KIB: u32 = 64 << 10;
const PASSPHRASE_PASSES: u32 = 3;

/// What opens a store. Each party has its own; the peer's need not be the same.
pub struct StoreKey(Secret);

enum Secret {
    Key(Zeroizing<[u8; KEY]>),
    Passphrase(Zeroizing<String>),
}

impl StoreKey {
    /// 256 uniform bits, as from a key file.
    #[must_use]
    pub fn from_bytes(key: &[u8; KEY]) -> Self {
        Self(Secret::Key(Zeroizing::new(*key)))
    }

    /// A passphrase. Each opening takes 64 MiB and a few tenths of a second, which is what one guess costs.
    ///
    /// # Errors
    /// If it is empty.
    pub fn from_passphrase(passphrase: &str) -> Result<Self, StoreError> {
        if passphrase.is_empty() {
            return Err(StoreError::Passphrase {
                reason: "it is empty",
            });
        }
        let passphrase = Zeroizing::new(passphrase.to_owned());
        Ok(Self(Secret::Passphrase(passphrase)))
    }

    pub(super) const fn kind(&self) -> Kind {
        match self.0 {
            Secret::Key(_) => Kind::Key,
            Secret::Passphrase(_) => Kind::Passphrase,
        }
    }

    /// The key that all of one store's come from.
    pub(super) fn master(&self, salt: &[u8; SALT]) -> Result<SubKey, StoreError> {
        match &self.0 {
            Secret::Key(key) => Ok(SubKey::derive("volvelle store 1 key", &[&**key, salt])),
            Secret::Passphrase(passphrase) => stretch(passphrase.as_bytes(), salt),
        }
    }
}

fn stretch(passphrase: &[u8], salt: &[u8; SALT]) -> Result<SubKey, StoreError> {
    use argon2::{Algorithm, Argon2, Params, Version};
    let refused = |_| StoreError::Passphrase {
        reason: "it is too long, or memory is short",
    };
    let params = Params::new(PASSPHRASE_KIB, PASSPHRASE_PASSES, 1, Some(KEY)).map_err(refused)?;
    let mut key = Zeroizing::new([0; KEY]);
    Argon2::new(Algorithm::Argon2id, Version::V0x13, params)
        .hash_password_into(passphrase, salt, &mut *key)
        .map_err(refused)?;
    Ok(SubKey(key))
}

/// Kinds of keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Key = 0,
    Passphrase = 1,
}

impl Kind {
    pub const fn name(self) -> &'static str {
        match self {
            Self::Key => "key file",
            Self::Passphrase => "passphrase",
        }
    }

    pub const fn from_code(code: u8) -> Option<Self> {
        match code {
            0 => Some(Self::Key),
            1 => Some(Self::Passphrase),
            _ => None,
        }
    }
}

/// A key for one purpose.
#[derive(Clone)]
pub(super) struct SubKey(Zeroizing<[u8; KEY]>);

impl SubKey {
    pub fn random(prg: &mut Prg) -> Self {
        let mut key = Zeroizing::new([0; KEY]);
        prg.fill_bytes(&mut *key);
        Self(key)
    }

    pub fn from_slice(bytes: &[u8; KEY]) -> Self {
        Self(Zeroizing::new(*bytes))
    }

    pub fn bytes(&self) -> &[u8; KEY] {
        &self.0
    }

    /// The key for a purpose under this one; SHA-256 as a pseudorandom function of inputs of fixed length.
    pub fn sub(&self, purpose: &str) -> Self {
        Self::derive(purpose, &[&*self.0])
    }

    fn derive(purpose: &str, inputs: &[&[u8]]) -> Self {
        let mut hash = Sha256::new_with_prefix(purpose.as_bytes());
        inputs.iter().for_each(|input| hash.update(input));
        Self(Zeroizing::new(hash.finalize().into()))
    }

    /// Encrypts in place.
    pub fn seal(
        &self,
        nonce: &[u8; NONCE],
        bound: &[u8],
        text: &mut [u8],
    ) -> Result<[u8; TAG], StoreError> {
        let tag = self
            .cipher()
            .encrypt_inout_detached(&XNonce::from(*nonce), bound, text.into());
        tag.map(Into::into).map_err(|_| StoreError::TooLong)
    }

    /// Decrypts in place; whether the bytes are those sealed, with what they were bound to.
    #[must_use]
    pub fn unseal(
        &self,
        nonce: &[u8; NONCE],
        bound: &[u8],
        text: &mut [u8],
        tag: &[u8; TAG],
    ) -> bool {
        let (nonce, tag) = (XNonce::from(*nonce), Tag::from(*tag));
        self.cipher()
            .decrypt_inout_detached(&nonce, bound, text.into(), &tag)
            .is_ok()
    }

    fn cipher(&self) -> XChaCha20Poly1305 {
        XChaCha20Poly1305::new((&*self.0).into())
    }
}
