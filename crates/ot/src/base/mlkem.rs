//! Base OT from ML-KEM-768 (FIPS 203), secure against quantum computers.
//!
//! Source: Masny and Rindal, "Endemic Oblivious Transfer", CCS 2019, §5 and its instantiation with Kyber, by way of a
//! two-message key agreement whose first message looks uniform. An encapsulation key is a vector `t` over
//! Z_q, uniform to the eye under Module-LWE, and a seed ρ of the public matrix, which both of an OT's keys share. The receiver
//! offsets its vector by a hash of the other value; for one who does not know a short secret of either, or knows
//! that of one, the other key is a random one and its ciphertexts say nothing, again under Module-LWE.
//! Hashes (SHAKE128, SHA-256) are random oracles.
//!
//! ```text
//! sender                                         receiver(choice c)
//!                              ◀─ρ, r_0, r_1──   (t, ρ), dk ← KeyGen,  r_{1⊕c} ← Z_q^768,
//!                                                r_c = t − V(i, c, ρ, r_{1⊕c})
//! (x_v, s_v) ← Encaps(ρ, r_v + V(i, v, ρ, r_{1⊕v}))   ──x_0, x_1──▶
//! k_v = H(i, v, x_v, s_v)                        k_c = H(i, c, x_c, Decaps(dk, x_c))
//! ```
//! Bits: 18 688·128 from the receiver, 17 408·128 from the sender. Two messages. A sender that sends bad
//! ciphertexts gets keys that it cannot predict (implicit rejection), and no error to observe.

use ml_kem::kem::{Decapsulate, KeyExport};
use ml_kem::{DecapsulationKey768, EncapsulationKey768};
use sha2::{Digest, Sha256};
use shake::{ExtendableOutput, Shake128, Update, XofReader};
use volvelle_net::{Channel, Label};
use volvelle_prim::{Block, Prg};
use zeroize::Zeroizing;

use super::ristretto::first_block;
use super::{COUNT, Keys, choice, room_for_pairs};
use crate::OtError;

/// The modulus of ML-KEM.
const Q: u16 = 3329;
/// Coefficients of `t`: three polynomials of degree below 256.
const COEFFICIENTS: usize = 3 * 256;
/// Bytes of `t`, twelve bits a coefficient.
const VECTOR: usize = COEFFICIENTS * 12 / 8;
const SEED: usize = 32;
const CIPHERTEXT: usize = 1088;
/// A receiver's message a OT: the seed and two vectors.
const REQUEST: usize = SEED + 2 * VECTOR;
/// Bytes that both parties send for one direction.
pub(super) const BYTES: usize = COUNT * (REQUEST + 2 * CIPHERTEXT);

const FIRST: Label = Label::new("ot/base/mlkem/first");
const REPLY: Label = Label::new("ot/base/mlkem/reply");

type Vector = [u16; COEFFICIENTS];
/// Uniform bytes for a vector, 128 bits a coefficient: its distance from uniform is below 2^-106.
type Entropy = [u8; 16 * COEFFICIENTS];

/// Every 16 bytes reduced mod q. Rejection sampling would be shorter and take a time that depends on the input, and
/// with it on the choice.
fn reduce(entropy: &Entropy) -> Vector {
    let mut out = [0; COEFFICIENTS];
    for (out, bytes) in out.iter_mut().zip(entropy.as_chunks::<16>().0) {
        let limbs = bytes.as_chunks::<2>().0;
        let fold = |r: u32, &limb: &[u8; 2]| {
            (r << 16 | u32::from(u16::from_le_bytes(limb))) % u32::from(Q)
        };
        *out = limbs.iter().fold(0, fold) as u16;
    }
    out
}

/// `V(i, v, ρ, other)`.
fn offset(index: usize, slot: u8, seed: &[u8], other: &[u8]) -> Vector {
    let mut hash = Shake128::default();
    hash.update(b"volvelle ML-KEM OT v1: vector");
    hash.update(&(index as u64).to_le_bytes());
    hash.update(&[slot]);
    hash.update(seed);
    hash.update(other);
    let mut entropy = [0; 16 * COEFFICIENTS];
    hash.finalize_xof().read(&mut entropy);
    reduce(&entropy)
}

fn key(index: usize, slot: u8, ciphertext: &[u8], shared: &[u8]) -> Block {
    let mut hash = Sha256::new();
    Digest::update(&mut hash, b"volvelle ML-KEM OT v1: key");
    Digest::update(&mut hash, (index as u64).to_le_bytes());
    Digest::update(&mut hash, [slot]);
    Digest::update(&mut hash, ciphertext);
    Digest::update(&mut hash, shared);
    first_block(&hash.finalize())
}

fn decode(bytes: &[u8]) -> Vector {
    let mut out = [0; COEFFICIENTS];
    for (pair, b) in out
        .as_chunks_mut::<2>()
        .0
        .iter_mut()
        .zip(bytes.as_chunks::<3>().0)
    {
        pair[0] = u16::from(b[0]) | u16::from(b[1] & 15) << 8;
        pair[1] = u16::from(b[1] >> 4) | u16::from(b[2]) << 4;
    }
    out
}

fn encode(vector: &Vector, bytes: &mut [u8]) {
    for (b, pair) in bytes
        .as_chunks_mut::<3>()
        .0
        .iter_mut()
        .zip(vector.as_chunks::<2>().0)
    {
        b[0] = pair[0] as u8;
        b[1] = (pair[0] >> 8 | pair[1] << 4) as u8;
        b[2] = (pair[1] >> 4) as u8;
    }
}

/// `a ± b` mod q, coefficient by coefficient; `b` reduced.
fn combine(a: &Vector, b: &Vector, subtract: bool) -> Vector {
    let mut out = *a;
    for (out, &b) in out.iter_mut().zip(b) {
        *out = (*out + if subtract { Q - b } else { b }) % Q;
    }
    out
}

/// The encapsulation key of slot `v` of a receiver's message.
fn encapsulation_key(index: usize, v: u8, request: &[u8]) -> Result<EncapsulationKey768, OtError> {
    let (seed, values) = request.split_at(SEED);
    let (first, second) = values.split_at(VECTOR);
    let (own, other) = if v == 0 {
        (first, second)
    } else {
        (second, first)
    };
    let own = decode(own);
    if own.iter().any(|&c| c >= Q) {
        return Err(OtError::InvalidKey { index });
    }
    let mut bytes = [0; VECTOR + SEED];
    encode(
        &combine(&own, &offset(index, v, seed, other), false),
        &mut bytes[..VECTOR],
    );
    bytes[VECTOR..].copy_from_slice(seed);
    EncapsulationKey768::new(&bytes.into()).map_err(|_| OtError::InvalidKey { index })
}

/// The receiver's message of an OT and what it keeps.
fn request(index: usize, c: u8, prg: &mut Prg, out: &mut [u8]) -> DecapsulationKey768 {
    let mut randomness = Zeroizing::new([0; 64]);
    prg.fill_bytes(&mut *randomness);
    let secret = DecapsulationKey768::from_seed((*randomness).into());
    let public = secret.encapsulation_key().to_bytes();
    let (vector, seed) = public.split_at(VECTOR);

    // Which of the two values is which tells the choice.
    let mut entropy = Zeroizing::new([0; 16 * COEFFICIENTS]);
    prg.fill_bytes(&mut *entropy);
    let mut other = Zeroizing::new([0; VECTOR]);
    encode(&reduce(&entropy), &mut *other);
    let mut own = Zeroizing::new([0; VECTOR]);
    encode(
        &combine(&decode(vector), &offset(index, c, seed, &other[..]), true),
        &mut *own,
    );

    let swap = 0u8.wrapping_sub(c);
    let (out_seed, values) = out.split_at_mut(SEED);
    out_seed.copy_from_slice(seed);
    let (first, second) = values.split_at_mut(VECTOR);
    for k in 0..VECTOR {
        let difference = (own[k] ^ other[k]) & swap;
        first[k] = own[k] ^ difference;
        second[k] = other[k] ^ difference;
    }
    secret
}

/// Both keys of an OT and their ciphertexts.
fn reply(
    index: usize,
    request: &[u8],
    prg: &mut Prg,
    out: &mut [u8],
) -> Result<[Block; 2], OtError> {
    let mut keys = [Block::ZERO; 2];
    for (v, (key_out, out)) in keys
        .iter_mut()
        .zip(out.chunks_exact_mut(CIPHERTEXT))
        .enumerate()
    {
        let public = encapsulation_key(index, v as u8, request)?;
        let mut message = Zeroizing::new([0; 32]);
        prg.fill_bytes(&mut *message);
        let (ciphertext, shared) = public.encapsulate_deterministic(&(*message).into());
        let shared = Zeroizing::new(shared);
        out.copy_from_slice(&ciphertext);
        *key_out = key(index, v as u8, out, &shared);
    }
    Ok(keys)
}

/// The chosen key of an OT.
fn open(index: usize, c: u8, secret: &DecapsulationKey768, ciphertexts: &[u8]) -> Block {
    let (first, second) = ciphertexts.split_at(CIPHERTEXT);
    let take = 0u8.wrapping_sub(c);
    let mut ciphertext = Zeroizing::new([0; CIPHERTEXT]);
    for (out, (a, b)) in ciphertext.iter_mut().zip(first.iter().zip(second)) {
        *out = a ^ ((a ^ b) & take);
    }
    let shared = Zeroizing::new(secret.decapsulate(&(*ciphertext).into()));
    key(index, c, &*ciphertext, &shared)
}

pub(super) fn run(ch: &mut Channel, prg: &mut Prg, choices: Block) -> Result<Keys, OtError> {
    let mut requests = vec![0; COUNT * REQUEST];
    let secrets: Vec<DecapsulationKey768> = requests
        .chunks_exact_mut(REQUEST)
        .enumerate()
        .map(|(i, out)| request(i, choice(choices, i), prg, out))
        .collect();
    ch.send(FIRST, &requests)?;
    ch.recv(FIRST, &mut requests)?;

    let mut ciphertexts = vec![0; COUNT * 2 * CIPHERTEXT];
    let mut pairs = room_for_pairs();
    let replies = ciphertexts.chunks_exact_mut(2 * CIPHERTEXT);
    for (i, (request, out)) in requests.chunks_exact(REQUEST).zip(replies).enumerate() {
        pairs.push(reply(i, request, prg, out)?);
    }
    ch.send(REPLY, &ciphertexts)?;
    ch.recv(REPLY, &mut ciphertexts)?;

    let chosen = ciphertexts
        .chunks_exact(2 * CIPHERTEXT)
        .zip(&secrets)
        .enumerate()
        .map(|(i, (two, secret))| open(i, choice(choices, i), secret, two))
        .collect();
    Ok(Keys {
        pairs,
        chosen: Zeroizing::new(chosen),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_survive_their_encoding_and_offsets_undo() {
        let mut prg = Prg::from_seed(Block(1));
        let mut entropy = [0; 16 * COEFFICIENTS];
        prg.fill_bytes(&mut entropy);
        let a = reduce(&entropy);
        let mut bytes = [0; VECTOR];
        encode(&a, &mut bytes);
        assert_eq!(decode(&bytes), a);
        let b = offset(1, 0, &bytes, &bytes);
        assert_eq!(combine(&combine(&a, &b, false), &b, true), a);
        let wide = |bytes: &[u8; 16]| (u128::from_be_bytes(swapped(*bytes)) % u128::from(Q)) as u16;
        assert!(
            entropy
                .as_chunks()
                .0
                .iter()
                .zip(a)
                .all(|(bytes, c)| wide(bytes) == c)
        );
    }

    /// Most significant limb first, limbs little-endian, as big-endian bytes.
    fn swapped(mut bytes: [u8; 16]) -> [u8; 16] {
        bytes.chunks_exact_mut(2).for_each(<[u8]>::reverse);
        bytes
    }

    #[test]
    fn a_coefficient_out_of_range_is_refused() {
        let mut prg = Prg::from_seed(Block(2));
        let mut message = vec![0; REQUEST];
        let _secret = request(5, 1, &mut prg, &mut message);
        assert!(
            encapsulation_key(5, 0, &message).is_ok() && encapsulation_key(5, 1, &message).is_ok()
        );
        message[SEED..SEED + 3].fill(0xff);
        assert!(matches!(
            encapsulation_key(5, 0, &message),
            Err(OtError::InvalidKey { index: 5 })
        ));
    }

    #[test]
    fn both_values_are_uniform_mod_q_whatever_the_choice() {
        // Mean of a uniform coefficient: (q − 1)/2; its deviation over 128·768 of them is about 3.1.
        for c in [0, 1] {
            let mut prg = Prg::from_seed(Block(c.into()));
            let mut sums = [0f64; 2];
            for i in 0..COUNT {
                let mut message = vec![0; REQUEST];
                let _secret = request(i, c, &mut prg, &mut message);
                for (sum, value) in sums.iter_mut().zip(message[SEED..].chunks_exact(VECTOR)) {
                    *sum += decode(value).iter().map(|&x| f64::from(x)).sum::<f64>();
                }
            }
            for sum in sums {
                let mean = sum / (COUNT * COEFFICIENTS) as f64;
                assert!((mean - f64::from(Q - 1) / 2.0).abs() < 20.0, "mean {mean}");
            }
        }
    }
}
