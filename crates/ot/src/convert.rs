//! Chosen OT and 1-of-n OT from random OT (Beaver, CRYPTO 1995; Naor–Pinkas, STOC 1999).
//!
//! ```text
//! sender (pads p_0, p_1)           receiver (random choice c, pad p_c; wants x)
//!                        ◀──f──    f = x ⊕ c
//! m_v ⊕ p_{v ⊕ f}        ──v=0,1─▶ m_x
//! ```
//! For 1-of-2^k the pad of slot `v` is the XOR of k pads, one a bit of `v`, each with bits of its own for
//! every slot. Rounds: 2.

use volvelle_net::{Channel, Label};
use volvelle_prim::{BitVec, Block, mask, pack};
use zeroize::Zeroizing;

use crate::{Cost, Ot, OtError};

const FIX: Label = Label::new("ot/chosen/fix");
const MESSAGES: Label = Label::new("ot/chosen/messages");

/// Chosen OT as sender of `messages[i] = [m_0, m_1]`, a block each.
///
/// Bits: 256 an OT from the sender, 1 from the receiver.
///
/// # Errors
/// [`OtError::Net`] for connection trouble or a malformed message.
pub fn send_chosen(ot: &mut Ot, ch: &mut Channel, messages: &[[Block; 2]]) -> Result<(), OtError> {
    let count = messages.len();
    if count == 0 {
        return Ok(());
    }
    check_frame(32 * count)?;
    let mut zeros = Zeroizing::new(vec![Block::ZERO; count]);
    let mut ones = zeros.clone();
    ot.send_random(ch, 1, &mut zeros, &mut ones)?;
    let fix = ot.or_broken(recv_bits(ch, FIX, count))?;
    let masked: Vec<Block> = (0..count)
        .flat_map(|i| {
            let f = u8::from(fix.get(i));
            let swap = (zeros[i] ^ ones[i]).keep_if(f);
            [
                messages[i][0] ^ zeros[i] ^ swap,
                messages[i][1] ^ ones[i] ^ swap,
            ]
        })
        .collect();
    ot.or_broken(ch.send(MESSAGES, Block::as_bytes(&masked)))?;
    ot.or_broken(ch.flush())?;
    Ok(())
}

/// Chosen OT as receiver; returns `messages[i][choices[i]]`.
///
/// # Errors
/// As [`send_chosen`].
pub fn recv_chosen(ot: &mut Ot, ch: &mut Channel, choices: &BitVec) -> Result<Vec<Block>, OtError> {
    let count = choices.len();
    if count == 0 {
        return Ok(vec![]);
    }
    check_frame(32 * count)?;
    let mut random = Zeroizing::new(vec![0; count]);
    let mut pads = Zeroizing::new(vec![Block::ZERO; count]);
    ot.recv_random(ch, 1, &mut random, &mut pads)?;
    let fix = BitVec::from_fn(count, |i| choices.get(i) ^ (random[i] == 1));
    ot.or_broken(ch.send(FIX, &fix.to_bytes()))?;
    let mut masked = vec![Block::ZERO; 2 * count];
    ot.or_broken(ch.recv(MESSAGES, Block::as_bytes_mut(&mut masked)))?;
    Ok((0..count)
        .map(|i| {
            open_chosen(
                [masked[2 * i], masked[2 * i + 1]],
                choices.get(i).into(),
                pads[i],
            )
        })
        .collect())
}

/// The message that the secret choice `x` names, in time and addresses independent of it.
pub(crate) fn open_chosen(masked: [Block; 2], x: u8, pad: Block) -> Block {
    masked[0].keep_if(1 ^ x) ^ masked[1].keep_if(x) ^ pad
}

/// Shape of a batch of 1-of-`2^log_n` OTs of `bits`-bit messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OneOfN {
    /// `log2` of the number of messages, `1..=12`.
    pub log_n: u32,
    /// Bits a message, `1..=64`.
    pub bits: u32,
}

impl OneOfN {
    /// Exact cost of `count` OTs with the client as sender (mirror it for the server).
    #[must_use]
    pub const fn cost(self, count: usize) -> Cost {
        Cost {
            client_bits: 8 * pack::packed_len(count << self.log_n, self.bits) as u64,
            server_bits: 8 * pack::packed_len(count, self.log_n) as u64,
            rounds: 2,
            cots_client: count as u64 * self.log_n as u64,
            cots_server: 0,
        }
    }

    const fn width(self) -> usize {
        ((self.bits as usize) << self.log_n).div_ceil(128)
    }

    /// Bits `v·bits ..` of a pad: slot `v`'s own.
    fn slot(self, pad: &[Block], v: usize) -> u64 {
        let at = v * self.bits as usize;
        let (block, shift) = (at / 128, at % 128);
        let low = pad[block].0 >> shift;
        let high = if shift > 64 {
            pad.get(block + 1).map_or(0, |b| b.0 << (128 - shift))
        } else {
            0
        };
        (low | high) as u64 & mask(self.bits)
    }

    fn check(self) -> Result<(), OtError> {
        if !(1..=12).contains(&self.log_n) || !(1..=64).contains(&self.bits) {
            return Err(OtError::Shape {
                what: "1-of-n OT (n from 2 to 2^12, 1 to 64 bits a message): log2 n",
                expected: 12,
                got: self.log_n as usize,
            });
        }
        Ok(())
    }

    /// As sender: `messages[i·2^log_n + v]` is message `v` of OT `i`.
    ///
    /// # Errors
    /// [`OtError::Shape`] for a bad shape or a number of messages that is no multiple of `2^log_n`;
    /// [`OtError::Net`].
    pub fn send(self, ot: &mut Ot, ch: &mut Channel, messages: &[u64]) -> Result<(), OtError> {
        self.check()?;
        let (n, k) = (1usize << self.log_n, self.log_n as usize);
        let count = messages.len() / n;
        OtError::check("messages of 1-of-n OTs", count * n, messages.len())?;
        if count == 0 {
            return Ok(());
        }
        check_frame(pack::packed_len(messages.len(), self.bits))?;
        let width = self.width();
        let mut zeros = Zeroizing::new(vec![Block::ZERO; count * k * width]);
        let mut ones = zeros.clone();
        ot.send_random(ch, width, &mut zeros, &mut ones)?;
        let fix = ot.or_broken(recv_words(ch, FIX, count, self.log_n))?;
        let mut masked = Vec::with_capacity(messages.len());
        for (i, own) in messages.chunks_exact(n).enumerate() {
            for (v, &message) in own.iter().enumerate() {
                // The fix is public, so it may pick pads.
                let slot = v ^ fix[i] as usize;
                let pad = (0..k).fold(0, |acc, t| {
                    let pads = if slot >> t & 1 == 1 { &ones } else { &zeros };
                    acc ^ self.slot(&pads[(i * k + t) * width..][..width], slot)
                });
                masked.push(message ^ pad);
            }
        }
        ot.or_broken(ch.send(MESSAGES, &pack::pack(&masked, self.bits)))?;
        ot.or_broken(ch.flush())?;
        Ok(())
    }

    /// As receiver: returns message `choices[i]` of OT `i`. Every slot is read and masked, so no address
    /// depends on a choice.
    ///
    /// # Errors
    /// As [`Self::send`]; choices are reduced mod `2^log_n`.
    pub fn recv(self, ot: &mut Ot, ch: &mut Channel, choices: &[u64]) -> Result<Vec<u64>, OtError> {
        self.check()?;
        let (n, k, count) = (1usize << self.log_n, self.log_n as usize, choices.len());
        if count == 0 {
            return Ok(vec![]);
        }
        check_frame(pack::packed_len(count * n, self.bits))?;
        let width = self.width();
        let mut bits = Zeroizing::new(vec![0; count * k]);
        let mut pads = Zeroizing::new(vec![Block::ZERO; count * k * width]);
        ot.recv_random(ch, width, &mut bits, &mut pads)?;
        let joined = |bits: &[u8]| {
            let bits = bits.iter().enumerate();
            bits.fold(0, |acc, (t, &b)| acc | u64::from(b) << t)
        };
        let random: Zeroizing<Vec<u64>> =
            Zeroizing::new(bits.chunks_exact(k).map(joined).collect());
        let fix: Vec<u64> = random.iter().zip(choices).map(|(r, c)| r ^ c).collect();
        ot.or_broken(ch.send(FIX, &pack::pack(&fix, self.log_n)))?;
        let masked = ot.or_broken(recv_words(ch, MESSAGES, count * n, self.bits))?;
        let pick = |i: usize| {
            let choice = choices[i] & mask(self.log_n);
            let row = &masked[i * n..][..n];
            let message = (0..n).fold(0, |acc, v| acc | row[v] & equal(v as u64, choice));
            let pads = &pads[i * k * width..][..k * width];
            let pad = (0..n).fold(0, |acc, v| {
                let slot = pads
                    .chunks_exact(width)
                    .fold(0, |acc, pad| acc ^ self.slot(pad, v));
                acc | slot & equal(v as u64, random[i])
            });
            message ^ pad
        };
        Ok((0..count).map(pick).collect())
    }
}

/// The messages of a batch are one frame, of at most 1 GiB: refused before OTs are spent on it.
fn check_frame(bytes: usize) -> Result<(), OtError> {
    const LIMIT: usize = 1 << 30;
    if bytes > LIMIT {
        return Err(OtError::TooMany {
            what: "bytes of chosen messages in a call",
            limit: LIMIT as u64,
            got: bytes as u64,
        });
    }
    Ok(())
}

/// All ones if `a == b`, else zero, without a branch.
fn equal(a: u64, b: u64) -> u64 {
    let d = a ^ b;
    ((d | d.wrapping_neg()) >> 63).wrapping_sub(1)
}

fn recv_bits(ch: &mut Channel, label: Label, count: usize) -> Result<BitVec, OtError> {
    let words = recv_words(ch, label, count, 1)?;
    Ok(BitVec::from_fn(count, |i| words[i] == 1))
}

fn recv_words(
    ch: &mut Channel,
    label: Label,
    count: usize,
    bits: u32,
) -> Result<Vec<u64>, OtError> {
    let mut bytes = vec![0; pack::packed_len(count, bits)];
    ch.recv(label, &mut bytes)?;
    let mut words = vec![0; count];
    pack::unpack_into(&bytes, bits, &mut words);
    Ok(words)
}
