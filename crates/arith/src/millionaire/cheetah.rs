//! Leaves of the comparison by 1-of-2^w OT, w ≤ 4.
//!
//! Source: Cheetah (Huang et al., USENIX Security'22, §4), which compares blocks with silent OTs; the masks
//! are those of Naor–Pinkas' 1-of-n OT from log n OTs, but bits of the pads instead of hashes. New here: the
//! server's share is not random but makes the first slot's message zero.
//!
//! ```text
//! preprocessing (per block of w bits): w random OTs, S sends: pads r_{t,0}, r_{t,1}; C has c_t, r_{t,c_t}
//!     pads are read as 2^w slots of bits, and  S: M[v] = ⊕_t r_{t,v_t}[v]      C: M[c] = ⊕_t r_{t,c_t}[c]
//! online:  C → S:  f = y ⊕ c                                   w bits; y: C's block
//!          S:      T[v] = (1{v < x}, 1{v = x}); x: S's block;   share = T[f] ⊕ M[0]
//!          S → C:  m_p = T[p ⊕ f] ⊕ M[p] ⊕ share for p > 0        (2^w − 1)·2 bits; m_0 = 0
//!          C:      m_c ⊕ M[c] = T[y] ⊕ share
//! ```
//!
//! Preprocessing: no bits, w OTs a block. Online: w + 2·(2^w − 1) bits a block, the lowest one w + 2^w − 1; 2
//! rounds.
//!
//! Security: f is masked by the unseen c. For v ≠ c, M[v] has the term r_{t,v_t}[v] with v_t ≠ c_t, from a
//! pad that C does not have; different slots use different bits of the pads, so that the masks of all slots
//! but c are independent and uniform. Of them, M[p] masks m_p for p ≠ c, and M[0] masks m_c (through share)
//! if c ≠ 0: all 2^w − 1 messages are uniform, whatever T.
//!
//! Everything online is bit-sliced: 64 comparisons a word.

use volvelle_net::{Channel, Label, Role};
use volvelle_ot::{Cost, Ot, PhasedCost};
use volvelle_prim::BitVec;

use super::{Block, Leaf};
use crate::error::ArithError;
use crate::pads::{self, Items};
use crate::sliced::{Sliced, transpose32_twice};
use crate::wire;

const FIX: Label = Label::new("arith/compare/fix");
const SLOTS: Label = Label::new("arith/compare/slots");

/// Slots of the widest block.
const MAX_SLOTS: usize = 16;

impl Block {
    fn slots(self) -> usize {
        1 << self.width
    }

    /// Bits a slot: lt, and eq if needed.
    fn tables(self) -> usize {
        if self.needs_eq { 2 } else { 1 }
    }

    /// Bits of the sender's answer: lt of all slots but the first, then eq.
    fn answer_columns(self) -> usize {
        (self.slots() - 1) * self.tables()
    }
}

/// A bit for each of the client's possible block values v.
type Slots = [u64; MAX_SLOTS];

pub(super) struct CheetahLeaves {
    batch: usize,
    half: Half,
}

enum Half {
    /// Of each block: the choice bits, and the masks of the chosen slot.
    Client(Vec<ClientBlock>),
    /// Of each block: the masks of all slots.
    Server(Vec<Sliced>),
}

struct ClientBlock {
    choices: Sliced,
    lt: BitVec,
    eq: BitVec,
}

impl CheetahLeaves {
    pub fn prepare(
        ch: &mut Channel,
        ot: &mut Ot,
        blocks: &[Block],
        batch: usize,
    ) -> Result<Self, ArithError> {
        let half = match ot.role() {
            Role::Client => {
                let prepared = blocks
                    .iter()
                    .map(|b| ClientBlock::prepare(ch, ot, *b, batch));
                Half::Client(prepared.collect::<Result<_, _>>()?)
            }
            Role::Server => {
                let prepared = blocks.iter().map(|b| server_masks(ch, ot, *b, batch));
                Half::Server(prepared.collect::<Result<_, _>>()?)
            }
        };
        Ok(CheetahLeaves { batch, half })
    }

    pub fn cost(blocks: &[Block], batch: usize) -> PhasedCost {
        let fix_columns: usize = blocks.iter().map(|b| b.width).sum();
        PhasedCost {
            prep: Cost {
                cots_server: (fix_columns * batch) as u64,
                ..Cost::default()
            },
            online: Cost {
                client_bits: wire::wire_bools(fix_columns * batch),
                server_bits: blocks
                    .iter()
                    .map(|b| wire::wire_bools(b.answer_columns() * batch))
                    .sum(),
                rounds: 2,
                ..Cost::default()
            },
        }
    }

    pub fn run(
        self,
        ch: &mut Channel,
        blocks: &[Block],
        own: &Sliced,
    ) -> Result<Vec<Leaf>, ArithError> {
        match self.half {
            Half::Client(prepared) => client(ch, blocks, prepared, own, self.batch),
            Half::Server(masks) => server(ch, blocks, masks, own, self.batch),
        }
    }
}

fn items(block: Block, batch: usize) -> Items {
    Items {
        count: batch,
        ots: block.width,
        width: 1,
    }
}

/// Slots (lt in the low, eq in the high half) whose value has bit t set.
const SLOTS_WITH_BIT: [u32; 4] = [0xaaaa_aaaa, 0xcccc_cccc, 0xf0f0_f0f0, 0xff00_ff00];

/// The server's masks: lt of all slots, then eq of all slots.
fn server_masks(
    ch: &mut Channel,
    ot: &mut Ot,
    block: Block,
    batch: usize,
) -> Result<Sliced, ArithError> {
    let mut masks = Sliced::zeros(block.slots() * block.tables(), batch);
    let w = block.width;
    pads::send(ch, ot, items(block, batch), |start, zeros, ones| {
        for (k, (zeros, ones)) in zeros.chunks(64 * w).zip(ones.chunks(64 * w)).enumerate() {
            let mut rows = [0u64; 32];
            for (j, (z, o)) in zeros.chunks_exact(w).zip(ones.chunks_exact(w)).enumerate() {
                let all = z
                    .iter()
                    .zip(o)
                    .zip(SLOTS_WITH_BIT)
                    .fold(0, |m, ((z, o), with_bit)| {
                        let (z, o) = (z.0 as u32, o.0 as u32);
                        m ^ z ^ ((z ^ o) & with_bit)
                    });
                rows[j % 32] |= u64::from(all) << (j & 32);
            }
            transpose32_twice(&mut rows);
            let (lt, eq) = rows.split_at(MAX_SLOTS);
            let group = masks.group_mut(start / 64 + k);
            group[..block.slots()].copy_from_slice(&lt[..block.slots()]);
            if block.needs_eq {
                group[block.slots()..].copy_from_slice(&eq[..block.slots()]);
            }
        }
    })?;
    Ok(masks)
}

impl ClientBlock {
    fn prepare(
        ch: &mut Channel,
        ot: &mut Ot,
        block: Block,
        batch: usize,
    ) -> Result<Self, ArithError> {
        let mut this = ClientBlock {
            choices: Sliced::zeros(block.width, batch),
            lt: BitVec::zeros(batch),
            eq: BitVec::zeros(batch),
        };
        let w = block.width;
        pads::recv(ch, ot, items(block, batch), |start, choices, pads| {
            for (k, (choices, pads)) in choices.chunks(64 * w).zip(pads.chunks(64 * w)).enumerate()
            {
                let (mut lt, mut eq) = (0u64, 0u64);
                for (j, (c, pads)) in choices
                    .chunks_exact(w)
                    .zip(pads.chunks_exact(w))
                    .enumerate()
                {
                    let slot = c
                        .iter()
                        .enumerate()
                        .fold(0, |slot, (t, &c)| slot | (u32::from(c & 1) << t));
                    // A shift of a register by the secret slot takes the same time for all slots.
                    let chosen = pads.iter().fold(0, |m, p| m ^ p.0 as u32) >> slot;
                    lt |= u64::from(chosen & 1) << j;
                    eq |= u64::from(chosen >> MAX_SLOTS & 1) << j;
                }
                let g = start / 64 + k;
                (this.lt.words_mut()[g], this.eq.words_mut()[g]) = (lt, eq);
                for (t, column) in this.choices.group_mut(g).iter_mut().enumerate() {
                    *column = pads::gather_choices(choices[t..].iter().step_by(w));
                }
            }
        })?;
        Ok(this)
    }
}

fn client(
    ch: &mut Channel,
    blocks: &[Block],
    prepared: Vec<ClientBlock>,
    own: &Sliced,
    batch: usize,
) -> Result<Vec<Leaf>, ArithError> {
    let groups = batch.div_ceil(64);
    let mut fix = own.clone();
    for (block, prepared) in blocks.iter().zip(&prepared) {
        for g in 0..groups {
            for (f, c) in fix.group_mut(g)[block.from..]
                .iter_mut()
                .zip(prepared.choices.group(g))
            {
                *f ^= c;
            }
        }
    }
    let mut bytes = Vec::new();
    fix.pack_append(&mut bytes);
    wire::send_bytes(ch, FIX, &bytes)?;

    let mut leaves = Vec::with_capacity(blocks.len());
    for (block, mut prepared) in blocks.iter().zip(prepared) {
        let bytes = wire::recv_bytes(ch, SLOTS, Sliced::packed_len(block.answer_columns(), batch))?;
        let answer = Sliced::unpack(block.answer_columns(), batch, &bytes);
        for g in 0..groups {
            let chosen = one_hot(padded(prepared.choices.group(g)));
            let (lt, eq) = answer.group(g).split_at(block.slots() - 1);
            prepared.lt.words_mut()[g] ^= choose(&chosen, lt);
            prepared.eq.words_mut()[g] ^= choose(&chosen, eq);
        }
        leaves.push(leaf(*block, prepared.lt, prepared.eq));
    }
    Ok(leaves)
}

fn server(
    ch: &mut Channel,
    blocks: &[Block],
    masks: Vec<Sliced>,
    own: &Sliced,
    batch: usize,
) -> Result<Vec<Leaf>, ArithError> {
    let columns = blocks.iter().map(|b| b.width).sum();
    let bytes = wire::recv_bytes(ch, FIX, Sliced::packed_len(columns, batch))?;
    let fix = Sliced::unpack(columns, batch, &bytes);
    let mut leaves = Vec::with_capacity(blocks.len());
    for (block, masks) in blocks.iter().zip(masks) {
        let (mut lt, mut eq) = (BitVec::zeros(batch), BitVec::zeros(batch));
        let mut answer = Sliced::zeros(block.answer_columns(), batch);
        let bits = block.from..block.from + block.width;
        for g in 0..batch.div_ceil(64) {
            let d = padded(&own.group(g)[bits.clone()]);
            let f = padded(&fix.group(g)[bits.clone()]);
            let (lt_masks, eq_masks) = masks.group(g).split_at(block.slots());
            let (lt_out, eq_out) = answer.group_mut(g).split_at_mut(block.slots() - 1);
            lt.words_mut()[g] = seal(&less_than(d, f), lt_masks, lt_out);
            if block.needs_eq {
                let slots = one_hot(std::array::from_fn(|t| d[t] ^ f[t]));
                eq.words_mut()[g] = seal(&slots, eq_masks, eq_out);
            }
        }
        lt.clear_padding();
        eq.clear_padding();
        let mut bytes = Vec::new();
        answer.pack_append(&mut bytes);
        wire::send_bytes(ch, SLOTS, &bytes)?;
        leaves.push(leaf(*block, lt, eq));
    }
    Ok(leaves)
}

fn leaf(block: Block, lt: BitVec, eq: BitVec) -> Leaf {
    Leaf {
        lt,
        eq: block.needs_eq.then_some(eq),
    }
}

/// A block's bits, with zeros above a narrow one.
fn padded(bits: &[u64]) -> [u64; 4] {
    let mut out = [0; 4];
    out[..bits.len()].copy_from_slice(bits);
    out
}

/// Masks all slots but the first; the result is the share that makes the first one's message zero.
fn seal(slots: &Slots, masks: &[u64], out: &mut [u64]) -> u64 {
    let share = slots[0] ^ masks[0];
    for ((out, mask), slot) in out.iter_mut().zip(&masks[1..]).zip(&slots[1..]) {
        *out = slot ^ mask ^ share;
    }
    share
}

/// ⊕_v chosen[v]·messages[v − 1], the first slot's message being zero.
fn choose(chosen: &Slots, messages: &[u64]) -> u64 {
    chosen[1..]
        .iter()
        .zip(messages)
        .fold(0, |acc, (c, m)| acc ^ (c & m))
}

/// The values of two bits: 1 at position (b1 b0).
fn one_hot2(b0: u64, b1: u64) -> [u64; 4] {
    [!b1 & !b0, !b1 & b0, b1 & !b0, b1 & b0]
}

/// 1 at slot v, for the number v with these bits.
fn one_hot(bits: [u64; 4]) -> Slots {
    let (low, high) = (one_hot2(bits[0], bits[1]), one_hot2(bits[2], bits[3]));
    std::array::from_fn(|v| high[v / 4] & low[v % 4])
}

/// Slot p of two bits' worth: 1{p ⊕ f < d}.
fn less_than2(d0: u64, d1: u64, f0: u64, f1: u64) -> [u64; 4] {
    let [a, b, c] = [d0 | d1, d1, d0 & d1];
    // 1{v < d} for v = 0, 1, 2, 3 is (a, b, c, 0); exchange slots p and p ⊕ f.
    let (s, t) = ((a ^ b) & f0, c & f0);
    let low = [a ^ s, b ^ s, c ^ t, t];
    let (s, t) = ((low[0] ^ low[2]) & f1, (low[1] ^ low[3]) & f1);
    [low[0] ^ s, low[1] ^ t, low[2] ^ s, low[3] ^ t]
}

/// Slot p: 1{p ⊕ f < d}.
fn less_than(d: [u64; 4], f: [u64; 4]) -> Slots {
    let low = less_than2(d[0], d[1], f[0], f[1]);
    let high = less_than2(d[2], d[3], f[2], f[3]);
    let equal = one_hot2(d[2] ^ f[2], d[3] ^ f[3]);
    std::array::from_fn(|p| high[p / 4] ^ (equal[p / 4] & low[p % 4]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_the_permuted_table() {
        for d in 0..16u64 {
            for f in 0..16u64 {
                let bits = |x: u64| std::array::from_fn(|t| (x >> t & 1).wrapping_neg());
                let (lt, eq) = (less_than(bits(d), bits(f)), one_hot(bits(d ^ f)));
                for p in 0..16 {
                    assert_eq!(lt[p as usize], u64::from(p ^ f < d).wrapping_neg());
                    assert_eq!(eq[p as usize], u64::from(p ^ f == d).wrapping_neg());
                }
            }
        }
    }
}
