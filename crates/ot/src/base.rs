//! Base OT: `COUNT` = 128 random OTs from public-key cryptography.
//!
//! Source: Chou and Orlandi, "The Simplest Protocol for Oblivious Transfer", LATINCRYPT 2015, on the
//! Ristretto group of Curve25519. Semi-honest security under CDH with SHA-256 as a random oracle.
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
use curve25519_dalek::ristretto::{CompressedRistretto, RistrettoPoint};
use curve25519_dalek::scalar::Scalar;
use curve25519_dalek::traits::{Identity, IsIdentity};
use sha2::{Digest, Sha256};
use volvelle_net::{Channel, Label};
use volvelle_prim::{Block, Prg};
use zeroize::{Zeroize, Zeroizing};

use crate::OtError;

/// OTs in a batch: one a bit of Δ.
pub(crate) const COUNT: usize = 128;
const POINT: usize = 32;
const FIRST: Label = Label::new("ot/base/first");
const REPLY: Label = Label::new("ot/base/reply");

/// Sender's state between the two messages.
pub(crate) struct Sender {
    secret: Scalar,
    public: RistrettoPoint,
}

impl Drop for Sender {
    fn drop(&mut self) {
        self.secret.zeroize();
    }
}

fn random_scalar(prg: &mut Prg) -> Scalar {
    let mut wide = Zeroizing::new([0; 64]);
    prg.fill_bytes(&mut *wide);
    Scalar::from_bytes_mod_order_wide(&wide)
}

fn decode(bytes: &[u8; POINT], index: usize) -> Result<RistrettoPoint, OtError> {
    CompressedRistretto(*bytes)
        .decompress()
        .filter(|p| !p.is_identity())
        .ok_or(OtError::InvalidPoint { index })
}

fn key(index: usize, a: &[u8; POINT], b: &[u8; POINT], shared: &RistrettoPoint) -> Block {
    let digest = Sha256::new()
        .chain_update(b"volvelle base OT v1")
        .chain_update((index as u64).to_le_bytes())
        .chain_update(a)
        .chain_update(b)
        .chain_update(shared.compress().as_bytes())
        .finalize();
    let mut half = [0; 16];
    half.copy_from_slice(&digest[..16]);
    Block::from_bytes(half)
}

/// Sends the first message.
pub(crate) fn send_first(ch: &mut Channel, prg: &mut Prg) -> Result<Sender, OtError> {
    let secret = random_scalar(prg);
    let public = RISTRETTO_BASEPOINT_TABLE * &secret;
    ch.send(FIRST, public.compress().as_bytes())?;
    Ok(Sender { secret, public })
}

/// Receives the reply and derives both keys of every OT.
pub(crate) fn send_finish(
    ch: &mut Channel,
    state: &Sender,
) -> Result<Zeroizing<Vec<[Block; 2]>>, OtError> {
    let mut reply = [[0; POINT]; COUNT];
    ch.recv(REPLY, reply.as_flattened_mut())?;
    let a = state.public.compress().to_bytes();
    let offset = state.secret * state.public;
    let keys = reply.iter().enumerate().map(|(i, b)| {
        let shared = state.secret * decode(b, i)?;
        Ok([key(i, &a, b, &shared), key(i, &a, b, &(shared - offset))])
    });
    keys.collect::<Result<Vec<_>, OtError>>()
        .map(Zeroizing::new)
}

/// Receives the first message, replies, and derives the key that `choices` (bit `i` for OT `i`) picks.
pub(crate) fn receive(
    ch: &mut Channel,
    prg: &mut Prg,
    choices: Block,
) -> Result<Zeroizing<Vec<Block>>, OtError> {
    let mut a = [0; POINT];
    ch.recv(FIRST, &mut a)?;
    let public = decode(&a, 0)?;
    let mut reply = [[0; POINT]; COUNT];
    let mut keys = Zeroizing::new(Vec::with_capacity(COUNT));
    for (i, b) in reply.iter_mut().enumerate() {
        let mut secret = random_scalar(prg);
        let choice = ((choices.0 >> i & 1) as u8).into();
        let masked = conditional(&public, choice);
        *b = (RISTRETTO_BASEPOINT_TABLE * &secret + masked)
            .compress()
            .to_bytes();
        keys.push(key(i, &a, b, &(secret * public)));
        secret.zeroize();
    }
    ch.send(REPLY, reply.as_flattened())?;
    Ok(keys)
}

/// `point` if `choice`, else the neutral element, in constant time.
fn conditional(point: &RistrettoPoint, choice: subtle::Choice) -> RistrettoPoint {
    subtle::ConditionallySelectable::conditional_select(&RistrettoPoint::identity(), point, choice)
}

#[cfg(test)]
mod tests {
    use super::*;
    use volvelle_net::testing::{run_pair, scripted};

    #[test]
    fn the_receiver_gets_the_chosen_key_of_two_different_ones() {
        let choices = Prg::from_os().next_block();
        let (pairs, keys) = run_pair(
            |ch| {
                let state = send_first(ch, &mut Prg::from_os()).unwrap();
                send_finish(ch, &state).unwrap()
            },
            |ch| receive(ch, &mut Prg::from_os(), choices).unwrap(),
        );
        for i in 0..COUNT {
            let c = (choices.0 >> i & 1) as usize;
            assert!(keys[i] == pairs[i][c] && keys[i] != pairs[i][1 - c]);
        }
    }

    #[test]
    fn bytes_that_are_no_point_are_refused() {
        for bytes in [[0xff; POINT], [0; POINT]] {
            assert!(matches!(
                decode(&bytes, 3),
                Err(OtError::InvalidPoint { index: 3 })
            ));
        }
        let mut hung_up = scripted(volvelle_net::Role::Server, Vec::new());
        assert!(matches!(
            receive(&mut hung_up, &mut Prg::from_os(), Block(1)),
            Err(OtError::Net(_))
        ));
    }
}
