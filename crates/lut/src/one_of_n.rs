//! Keys of 1-of-n OT: `k` random OTs give a key for each of `n = 2^k` slots, of which the receiver has one.
//!
//! ```text
//!     sender: pads p_(t,0), p_(t,1), t < k            receiver: c ∈ {0,1}^k, uniform, and p_(t, c_t)
//!     key_x = ⊕_t p_(t, x_t)                           key_c
//! ```
//!
//! Nothing is sent. Every key but `key_c` differs from it by the sum of a non-empty set of blocks `Δ_t = p_(t,0)
//! ⊕ p_(t,1)` that are uniform and unknown to the receiver, so a tweakable correlation-robust hash
//! (random-permutation model, every key with its own tweak) makes pads of them: one hash a slot, where a PRF call
//! for each `t` and slot would be `k/2` of them.

use volvelle_net::Channel;
use volvelle_ot::Ot;
use volvelle_prim::Block;
use zeroize::Zeroizing;

use crate::LutError;

/// Receiver: draws the choices and the keys of as many OTs as there is room for.
pub(crate) fn draw_receiver(
    ch: &mut Channel,
    ot: &mut Ot,
    log_slots: u32,
    choices: &mut [u32],
    keys: &mut [Block],
) -> Result<(), LutError> {
    let k = log_slots as usize;
    let mut bits = Zeroizing::new(vec![0; choices.len() * k]);
    let mut pads = Zeroizing::new(vec![Block::ZERO; bits.len()]);
    ot.recv_random(ch, 1, &mut bits, &mut pads)?;
    let drawn = bits.chunks_exact(k).zip(pads.chunks_exact(k));
    for ((choice, key), (bits, pads)) in choices.iter_mut().zip(keys).zip(drawn) {
        *choice = bits.iter().rev().fold(0, |c, &bit| c << 1 | u32::from(bit));
        *key = pads.iter().fold(Block::ZERO, |key, &pad| key ^ pad);
    }
    Ok(())
}

/// Sender: draws what makes the keys, `key_0, Δ_0, …, Δ_(k−1)` for each OT there is room for.
pub(crate) fn draw_sender(
    ch: &mut Channel,
    ot: &mut Ot,
    log_slots: u32,
    seeds: &mut [Block],
) -> Result<(), LutError> {
    let k = log_slots as usize;
    let mut zero = Zeroizing::new(vec![Block::ZERO; seeds.len() / (k + 1) * k]);
    let mut one = zero.clone();
    ot.send_random(ch, 1, &mut zero, &mut one)?;
    let drawn = zero.chunks_exact(k).zip(one.chunks_exact(k));
    for (seeds, (zero, one)) in seeds.chunks_exact_mut(k + 1).zip(drawn) {
        seeds[0] = zero.iter().fold(Block::ZERO, |key, &pad| key ^ pad);
        for ((delta, &zero), &one) in seeds[1..].iter_mut().zip(zero).zip(one) {
            *delta = zero ^ one;
        }
    }
    Ok(())
}

/// Sender: the keys of one OT, `keys[v] = key_(v ⊕ offset)`; the offset is public.
pub(crate) fn expand(seeds: &[Block], offset: u64, keys: &mut [Block]) {
    let deltas = seeds[1..].iter().enumerate();
    keys[0] = deltas.clone().fold(seeds[0], |key, (t, delta)| {
        key ^ delta.keep_if((offset >> t) as u8)
    });
    for (t, &delta) in deltas {
        let (low, high) = keys.split_at_mut(1 << t);
        high.iter_mut()
            .zip(low)
            .for_each(|(high, &mut low)| *high = low ^ delta);
    }
}

/// The tweak of the pad of slot `v` of OT `i`.
pub(crate) fn tweak(i: usize, v: u64, log_slots: u32) -> u64 {
    (i as u64) << log_slots | v
}
