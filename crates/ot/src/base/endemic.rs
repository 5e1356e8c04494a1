//! Base OT by Diffie–Hellman on Ristretto, for parties that may cheat.
//!
//! Source: Masny and Rindal, "Endemic Oblivious Transfer", CCS 2019, §5.1, the sender's message serving all OTs. The
//! receiver's two values are a key offset by the hash of the other value, so it can know the exponent of at
//! most one of the keys, and which one, the order of its hash queries tells a simulator. UC security against
//! malicious parties under gap-CDH (under CDH with a loss in the number of hash queries), hashes as random
//! oracles.
//!
//! ```text
//! sender                                receiver(choice c)
//! a ← Z_p,  A = aG          ──A──▶
//!                           ◀─r_0, r_1─ b ← Z_p,  r_{1⊕c} a random point,  r_c = bG − P(i, c, r_{1⊕c})
//! k_v = H(i, v, A, r_0, r_1, a(r_v + P(i, v, r_{1⊕v})))     k_c = H(i, c, A, r_0, r_1, bA)
//! ```
//! `P` hashes to the group (SHA-512, then the map of RFC 9496 §4.3.4). Bits: 256 from the sender, 512·128
//! from the receiver. Two messages.

use curve25519_dalek::ristretto::{RistrettoBasepointTable, RistrettoPoint};
use sha2::{Digest, Sha256, Sha512};
use volvelle_net::{Channel, Label};
use volvelle_prim::{Block, Prg};
use zeroize::Zeroizing;

use super::ristretto::{POINT, Secret, decode, first_block};
use super::{COUNT, Keys, choice, room_for_pairs};
use crate::OtError;

/// Bytes that both parties send for one direction.
pub(super) const BYTES: usize = POINT + COUNT * 2 * POINT;
const FIRST: Label = Label::new("ot/base/endemic/first");
const REPLY: Label = Label::new("ot/base/endemic/reply");

type Point = [u8; POINT];

/// `P(i, v, other)`.
fn offset(index: usize, slot: u8, other: &Point) -> RistrettoPoint {
    let digest = Sha512::new()
        .chain_update(b"volvelle endemic OT v1: point")
        .chain_update((index as u64).to_le_bytes())
        .chain_update([slot])
        .chain_update(other)
        .finalize();
    RistrettoPoint::from_uniform_bytes(&digest.into())
}

fn key(index: usize, slot: u8, a: &Point, values: &[Point; 2], shared: &RistrettoPoint) -> Block {
    let digest = Sha256::new()
        .chain_update(b"volvelle endemic OT v1: key")
        .chain_update((index as u64).to_le_bytes())
        .chain_update([slot])
        .chain_update(a)
        .chain_update(values.as_flattened())
        .chain_update(shared.compress().as_bytes())
        .finalize();
    first_block(&digest)
}

pub(super) fn run(ch: &mut Channel, prg: &mut Prg, choices: Block) -> Result<Keys, OtError> {
    let secret = Secret::random(prg);
    let a = secret.public().compress().to_bytes();
    ch.send(FIRST, &a)?;
    let chosen = receive(ch, prg, choices)?;
    let mut replies = [[[0; POINT]; 2]; COUNT];
    ch.recv(REPLY, replies.as_flattened_mut().as_flattened_mut())?;
    let mut pairs = room_for_pairs();
    for (i, values) in replies.iter().enumerate() {
        let slot = |v: u8| -> Result<Block, OtError> {
            let (own, other) = (&values[usize::from(v)], &values[usize::from(1 ^ v)]);
            let public = decode(own, i)? + offset(i, v, other);
            Ok(key(i, v, &a, values, &(secret.0 * public)))
        };
        pairs.push([slot(0)?, slot(1)?]);
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
    let multiples = RistrettoBasepointTable::create(&decode(&a, 0)?);
    let mut replies = [[[0; POINT]; 2]; COUNT];
    let mut keys = Zeroizing::new(Vec::with_capacity(COUNT));
    for (i, values) in replies.iter_mut().enumerate() {
        let c = choice(choices, i);
        // It tells which of the two values is the random one: the choice.
        let mut uniform = Zeroizing::new([0; 64]);
        prg.fill_bytes(&mut *uniform);
        let other = RistrettoPoint::from_uniform_bytes(&uniform)
            .compress()
            .to_bytes();
        let secret = Secret::random(prg);
        let own = (secret.public() - offset(i, c, &other))
            .compress()
            .to_bytes();
        *values = ordered(&own, &other, c);
        keys.push(key(i, c, &a, values, &(&multiples * &secret.0)));
    }
    ch.send(REPLY, replies.as_flattened().as_flattened())?;
    Ok(keys)
}

/// `own` at position `c` of two, `other` at the other, in constant time.
fn ordered(own: &Point, other: &Point, c: u8) -> [Point; 2] {
    let swap = 0u8.wrapping_sub(c);
    let mut out = [*own, *other];
    for k in 0..POINT {
        let difference = (own[k] ^ other[k]) & swap;
        out[0][k] ^= difference;
        out[1][k] ^= difference;
    }
    out
}
