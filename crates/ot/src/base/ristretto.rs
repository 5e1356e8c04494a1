//! Base OT by Diffie–Hellman on the Ristretto group of Curve25519, for parties that follow the protocol.
//!
//! Source: Chou and Orlandi, "The Simplest Protocol for Oblivious Transfer", LATINCRYPT 2015. Semi-honest
//! security under CDH with SHA-256 as a random oracle. Against parties that cheat its proof does not hold (a
//! simulator learns the receiver's choice too late: Genç, Iovino, Rial, 2017); `super::endemic` is for them.
//!
//! ```text
//! sender                      receiver(choice c_i)
//! a ← Z_p,  A = aG   ──A──▶
//!                    ◀─B_i──  b_i ← Z_p,  B_i = b_i G + c_i A
//! k_i^0 = H(i, A, B_i, aB_i)           k_i = H(i, A, B_i, b_i A)
//! k_i^1 = H(i, A, B_i, a(B_i − A))
//! ```
//! Bits: 256 from the sender, 256·128 from the receiver. Two messages.

use curve25519_dalek::constants::RISTRETTO_BASEPOINT_TABLE;
use curve25519_dalek::ristretto::{CompressedRistretto, RistrettoBasepointTable, RistrettoPoint};
use curve25519_dalek::scalar::Scalar;
use curve25519_dalek::traits::{Identity, IsIdentity};
use sha2::{Digest, Sha256};
use subtle::{Choice, ConditionallySelectable};
use volvelle_net::{Channel, Label};
use volvelle_prim::{Block, Prg};
use zeroize::{Zeroize, Zeroizing};

use super::{COUNT, Keys, choice, room_for_pairs};
use crate::OtError;

/// Bytes of an encoded group element.
pub(super) const POINT: usize = 32;
/// Bytes that both parties send for one direction.
pub(super) const BYTES: usize = POINT + COUNT * POINT;
const FIRST: Label = Label::new("ot/base/first");
const REPLY: Label = Label::new("ot/base/reply");

/// A sender's exponent, wiped when dropped.
pub(super) struct Secret(pub(super) Scalar);

impl Secret {
    pub(super) fn random(prg: &mut Prg) -> Self {
        let mut wide = Zeroizing::new([0; 64]);
        prg.fill_bytes(&mut *wide);
        Self(Scalar::from_bytes_mod_order_wide(&wide))
    }

    pub(super) fn public(&self) -> RistrettoPoint {
        RISTRETTO_BASEPOINT_TABLE * &self.0
    }
}

impl Drop for Secret {
    fn drop(&mut self) {
        self.0.zeroize();
    }
}

pub(super) fn decode(bytes: &[u8; POINT], index: usize) -> Result<RistrettoPoint, OtError> {
    CompressedRistretto(*bytes)
        .decompress()
        .filter(|p| !p.is_identity())
        .ok_or(OtError::InvalidPoint { index })
}

/// The first half of a digest.
pub(super) fn first_block(digest: &[u8]) -> Block {
    let mut half = [0; 16];
    half.copy_from_slice(&digest[..16]);
    Block::from_bytes(half)
}

fn key(index: usize, a: &[u8; POINT], b: &[u8; POINT], shared: &RistrettoPoint) -> Block {
    let digest = Sha256::new()
        .chain_update(b"volvelle base OT v1")
        .chain_update((index as u64).to_le_bytes())
        .chain_update(a)
        .chain_update(b)
        .chain_update(shared.compress().as_bytes())
        .finalize();
    first_block(&digest)
}

pub(super) fn run(ch: &mut Channel, prg: &mut Prg, choices: Block) -> Result<Keys, OtError> {
    let secret = Secret::random(prg);
    let public = secret.public();
    let a = public.compress().to_bytes();
    ch.send(FIRST, &a)?;
    let chosen = receive(ch, prg, choices)?;
    let mut reply = [[0; POINT]; COUNT];
    ch.recv(REPLY, reply.as_flattened_mut())?;
    let offset = secret.0 * public;
    let mut pairs = room_for_pairs();
    for (i, b) in reply.iter().enumerate() {
        let shared = secret.0 * decode(b, i)?;
        pairs.push([key(i, &a, b, &shared), key(i, &a, b, &(shared - offset))]);
    }
    Ok(Keys { pairs, chosen })
}

/// Receives the first message, replies, and derives the chosen keys.
fn receive(
    ch: &mut Channel,
    prg: &mut Prg,
    choices: Block,
) -> Result<Zeroizing<Vec<Block>>, OtError> {
    let mut a = [0; POINT];
    ch.recv(FIRST, &mut a)?;
    let public = decode(&a, 0)?;
    // Many multiples of one public point: its table pays from the tenth or so.
    let multiples = RistrettoBasepointTable::create(&public);
    let mut reply = [[0; POINT]; COUNT];
    let mut keys = Zeroizing::new(Vec::with_capacity(COUNT));
    for (i, b) in reply.iter_mut().enumerate() {
        let secret = Secret::random(prg);
        let masked = conditional(&public, choice(choices, i).into());
        *b = (secret.public() + masked).compress().to_bytes();
        keys.push(key(i, &a, b, &(&multiples * &secret.0)));
    }
    ch.send(REPLY, reply.as_flattened())?;
    Ok(keys)
}

/// `point` if `choice`, else the neutral element, in constant time.
fn conditional(point: &RistrettoPoint, choice: Choice) -> RistrettoPoint {
    RistrettoPoint::conditional_select(&RistrettoPoint::identity(), point, choice)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_are_no_point_are_refused() {
        for bytes in [[0xff; POINT], [0; POINT]] {
            assert!(matches!(
                decode(&bytes, 3),
                Err(OtError::InvalidPoint { index: 3 })
            ));
        }
    }
}
