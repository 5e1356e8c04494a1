//! Permutations prepared by a network of switches (Mohassel, Sadeghian, EUROCRYPT 2013), of the kind that
//! sorts: then the holder finds its switches by sorting, without a choice that time could show.
//!
//! The parties share a vector, at first `a` as `O`'s share and zeros as `H`'s. A switch exchanges two
//! elements if its bit `b`, which `H` knows, is 1: with `d` the difference of the two, `b·d` is added to
//! one and taken off the other. `H` multiplies its share of `d` itself, `O`'s takes one OT: with pads
//! `p_0, p_1`, `O`'s share of the product is `−p_0`, `H`'s `p_b + b·message`. What comes out are shares
//! `r` and `c` of `ρ(a)`.
//!
//! ```text
//!     O                                                H
//!     S random OTs with O as sender, choices f of H
//!                                   ◀────────          b ⊕ f, all switches    (S bits)
//!     p_0 − p_1 + d_O   (S·l bits)  ────────▶
//! ```
//!
//! Bits: `S(l + 1)`; `S` OTs; 2 rounds for every [`WINDOW`] of switches. `S` is `n·k(k − 1)/4 + n − 1` for
//! `n = 2^k`. (Beneš's network has `n(k − ½)` switches, but finding them without showing them is another matter.)
//!
//! Security (semi-honest): `f` hides `b`; a message is masked by `p_0 − p_1`, of which `H` knows one half.

use volvelle_net::{Channel, Label};
use volvelle_ot::{Cost, Ot};
use volvelle_prim::{Block, Prg, pack};
use zeroize::Zeroizing;

use super::{Part, PermuteShape};
use crate::LutError;
use crate::exchange::ranges;
use crate::oblivious::{Network, Switches, comparisons};

const CHOICES: Label = Label::new("lut/permute-choices");
const PRODUCTS: Label = Label::new("lut/permute-products");

/// Switches whose OTs are kept at a time. An agreement parameter.
const WINDOW: usize = 1 << 21;

/// Products a frame, a multiple of 8. An agreement parameter.
const FRAME: usize = 1 << 16;

/// OTs a call.
const CALL: usize = 4096;

/// Permutations prepared at once.
fn window(switches: usize) -> usize {
    (WINDOW / switches).max(1)
}

/// What a batch sends and consumes with the server as holder.
pub(super) fn cost(shape: PermuteShape, batch: usize) -> Cost {
    let switches = comparisons(shape.len);
    let windows = ranges(batch, window(switches)).map(|w| {
        let count = switches * w.len();
        let products = ranges(count, FRAME).map(|f| pack::packed_len(f.len(), shape.bits) as u64);
        Cost {
            client_bits: 8 * products.sum::<u64>(),
            server_bits: 8 * pack::packed_len(count, 1) as u64,
            rounds: 2,
            cots_client: count as u64,
            ..Cost::default()
        }
    });
    windows.sum()
}

/// Makes a batch.
pub(super) fn prepare(
    ch: &mut Channel,
    ot: &mut Ot,
    shape: PermuteShape,
    batch: usize,
    prg: &mut Prg,
) -> Result<Part, LutError> {
    let network = Network::new(shape.len);
    if ch.role() == shape.holder {
        let mut c = Zeroizing::new(vec![0; batch * shape.len]);
        let mut rho = Vec::with_capacity(batch);
        for window in ranges(batch, window(network.len())) {
            let first = rho.len();
            rho.extend(window.clone().map(|_| network.random(prg)));
            let c = &mut c[window.start * shape.len..window.end * shape.len];
            hold(ch, ot, shape, &network, &rho[first..], c)?;
        }
        Ok(Part::Holder { network, rho, c })
    } else {
        let mut a = Zeroizing::new(vec![0; batch * shape.len]);
        prg.fill_u64(&mut a);
        let mut r = a.clone();
        for window in ranges(batch, window(network.len())) {
            let r = &mut r[window.start * shape.len..window.end * shape.len];
            own(ch, ot, shape, &network, r)?;
        }
        Ok(Part::Owner { a, r })
    }
}

/// Owner's half of a window; `shares` are its shares of the vectors, before and after.
fn own(
    ch: &mut Channel,
    ot: &mut Ot,
    shape: PermuteShape,
    network: &Network,
    shares: &mut [u64],
) -> Result<(), LutError> {
    let count = shares.len() / shape.len * network.len();
    let mut zeros = Zeroizing::new(vec![0; count]);
    let mut ones = zeros.clone();
    let mut zero = Zeroizing::new(vec![Block::ZERO; CALL.min(count)]);
    let mut one = zero.clone();
    for at in ranges(count, CALL) {
        let (zero, one) = (&mut zero[..at.len()], &mut one[..at.len()]);
        ot.send_random(ch, 1, zero, one)?;
        keep(zero, &mut zeros[at.clone()]);
        keep(one, &mut ones[at]);
    }
    let mut frame = vec![0; pack::packed_len(count, 1)];
    ch.recv(CHOICES, &mut frame)?;
    // In the order of the messages; a pad's place is taken by its message.
    for (v, shares) in shares.chunks_exact_mut(shape.len).enumerate() {
        let first = v * network.len();
        for (i, (low, high)) in network.backwards().enumerate() {
            let at = first + i;
            let swap = u64::from(frame[at / 8] >> (at % 8) & 1).wrapping_neg();
            let change = (zeros[at] ^ ones[at]) & swap;
            let (zero, one) = (zeros[at] ^ change, ones[at] ^ change);
            let difference = shares[high].wrapping_sub(shares[low]);
            zeros[at] = zero.wrapping_sub(one).wrapping_add(difference);
            shares[low] = shares[low].wrapping_sub(zero);
            shares[high] = shares[high].wrapping_add(zero);
        }
    }
    for products in zeros.chunks(FRAME) {
        ch.send(PRODUCTS, &pack::pack(products, shape.bits))?;
    }
    Ok(())
}

/// Holder's half of a window; `shares` are its shares of the permuted vectors, zeros before.
fn hold(
    ch: &mut Channel,
    ot: &mut Ot,
    shape: PermuteShape,
    network: &Network,
    rho: &[Switches],
    shares: &mut [u64],
) -> Result<(), LutError> {
    let count = rho.len() * network.len();
    let mut pads = Zeroizing::new(vec![0; count]);
    let mut blocks = Zeroizing::new(vec![Block::ZERO; CALL.min(count)]);
    let mut choices = Zeroizing::new(vec![0; count]);
    for at in ranges(count, CALL) {
        let blocks = &mut blocks[..at.len()];
        ot.recv_random(ch, 1, &mut choices[at.clone()], blocks)?;
        keep(blocks, &mut pads[at]);
    }
    let switches = rho.iter().flat_map(Switches::backwards);
    let mut open_choices = vec![0; count.div_ceil(8)];
    for (i, (choice, switch)) in choices.iter().zip(switches).enumerate() {
        open_choices[i / 8] |= (choice ^ switch) << (i % 8);
    }
    ch.send(CHOICES, &open_choices)?;
    let mut products = Zeroizing::new(vec![0; count]);
    let mut frame = Vec::new();
    for products in products.chunks_mut(FRAME) {
        frame.resize(pack::packed_len(products.len(), shape.bits), 0);
        ch.recv(PRODUCTS, &mut frame)?;
        pack::unpack_into(&frame, shape.bits, products);
    }
    let vectors = shares.chunks_exact_mut(shape.len).zip(rho);
    let messages = products.chunks_exact(network.len());
    let messages = messages.zip(pads.chunks_exact(network.len()));
    for ((shares, rho), (products, pads)) in vectors.zip(messages) {
        let switches = network.backwards().zip(rho.backwards());
        for (((low, high), switch), (&product, &pad)) in switches.zip(products.iter().zip(pads)) {
            let difference = shares[high].wrapping_sub(shares[low]);
            let chosen = product.wrapping_add(difference) & u64::from(switch).wrapping_neg();
            let moved = pad.wrapping_add(chosen);
            shares[low] = shares[low].wrapping_add(moved);
            shares[high] = shares[high].wrapping_sub(moved);
        }
    }
    Ok(())
}

/// A ring element of every pad.
fn keep(pads: &[Block], elements: &mut [u64]) {
    let kept = elements.iter_mut().zip(pads);
    kept.for_each(|(element, pad)| *element = pad.0 as u64);
}
