//! Permutations prepared by punctured PRFs: an `n × n` matrix of which the holder lacks one element in every
//! row and column (Chase, Ghosh, Poburinnaya, ASIACRYPT 2020, §4).
//!
//! `O` has the roots of `n` punctured PRFs of `2^k ≥ n` leaves, `H` all leaves of the `i`-th but that at a
//! random point `p_i`. Opening `δ_i = p_i ⊕ ρ(i)` renames the leaves of tree `i` so that the one that `H`
//! lacks is number `ρ(i)`: a matrix `u` of which `H` lacks `u_(i,ρ(i))`. `O` computes the sums `r_i` of its
//! rows and `a_j` of its columns, `H` the same with any constants for what it lacks. They cancel in
//! `c_i = a*_ρ(i) − r*_i = a_ρ(i) − r_i`.
//!
//! ```text
//!     O                                                H
//!     n punctured PRFs, all leaves         ◀──▶        points p_i, all leaves but those
//!                                   ◀────────          δ_i = p_i ⊕ ρ(i)       (n·k bits)
//!     r, a                                             c = ρ(a*) − r*
//! ```
//!
//! Bits: `128·n(k − 1) + n·k`; `n·k` OTs; 2 rounds for every [`WINDOW`] of leaves, which `O` keeps until
//! `δ` comes. Computing: `2n·2^k` AES and `4n²` additions.
//!
//! Security (semi-honest): `δ` is hidden from `O` by `p`; every `a_j` is masked by the leaf that `H` lacks
//! in column `j`.

use volvelle_net::{Channel, Label};
use volvelle_ot::{Cost, Ot};
use volvelle_prim::{Block, Prg, pack, sums};
use zeroize::Zeroizing;

use super::{Part, PermuteShape};
use crate::LutError;
use crate::exchange::ranges;
use crate::oblivious::Network;

const FIX: Label = Label::new("lut/permute-fix");

/// Leaves that are kept at a time: 64 MiB of them. An agreement parameter.
const WINDOW: usize = 1 << 23;

/// Permutations prepared at once.
fn window(shape: PermuteShape) -> usize {
    (WINDOW / (shape.len << shape.log())).max(1)
}

/// What a batch sends and consumes with the server as holder.
pub(super) fn cost(shape: PermuteShape, batch: usize) -> Cost {
    let trees = (batch * shape.len) as u64;
    let fixes = ranges(batch, window(shape)).map(|w| shape.places_bytes(w.len()) as u64);
    // A tree of one level needs no message, and then nothing is waited for.
    let windows = batch.div_ceil(window(shape)) as u64;
    Cost {
        client_bits: 128 * trees * u64::from(shape.log() - 1),
        server_bits: 8 * fixes.sum::<u64>(),
        rounds: if shape.log() > 1 { 2 * windows } else { 1 },
        cots_client: trees * u64::from(shape.log()),
        ..Cost::default()
    }
}

/// Makes a batch.
pub(super) fn prepare(
    ch: &mut Channel,
    ot: &mut Ot,
    shape: PermuteShape,
    batch: usize,
    prg: &mut Prg,
) -> Result<Part, LutError> {
    if ch.role() == shape.holder {
        prepare_holder(ch, ot, shape, batch, prg)
    } else {
        prepare_owner(ch, ot, shape, batch)
    }
}

/// Owner: the trees, then the renaming of their leaves and the sums.
fn prepare_owner(
    ch: &mut Channel,
    ot: &mut Ot,
    shape: PermuteShape,
    batch: usize,
) -> Result<Part, LutError> {
    let (n, k) = (shape.len, shape.log());
    let mut a = Zeroizing::new(vec![0; batch * n]);
    let mut r = a.clone();
    let mut leaves = Zeroizing::new(vec![0; window(shape).min(batch) * (n << k)]);
    for window in ranges(batch, window(shape)) {
        ot.send_pprf(ch, k, 1, window.len() * n, &mut |tree, rows| {
            keep_leaves(rows, &mut leaves[tree << k..]);
        })?;
        let mut frame = vec![0; shape.places_bytes(window.len())];
        ch.recv(FIX, &mut frame)?;
        let mut delta = vec![0; window.len() * n];
        pack::unpack_into(&frame, k, &mut delta);
        let matrices = leaves.chunks_exact(n << k).zip(delta.chunks_exact(n));
        let outputs = a[window.start * n..].chunks_exact_mut(n);
        let outputs = outputs.zip(r[window.start * n..].chunks_exact_mut(n));
        for ((matrix, delta), (a, r)) in matrices.zip(outputs) {
            sums(matrix, delta, r, a);
        }
    }
    Ok(Part::Owner { a, r })
}

/// Holder: the punctured trees, then a random permutation fixed to the points, and the sums.
fn prepare_holder(
    ch: &mut Channel,
    ot: &mut Ot,
    shape: PermuteShape,
    batch: usize,
    prg: &mut Prg,
) -> Result<Part, LutError> {
    let (n, k) = (shape.len, shape.log());
    let network = Network::new(n);
    let mut rho = Vec::with_capacity(batch);
    let mut c = Zeroizing::new(vec![0; batch * n]);
    let mut row = Zeroizing::new(vec![0; n]);
    let mut leaves = Zeroizing::new(vec![0; window(shape).min(batch) * (n << k)]);
    for window in ranges(batch, window(shape)) {
        let mut points = Zeroizing::new(vec![0; window.len() * n]);
        ot.recv_pprf(ch, k, 1, window.len() * n, &mut |tree, point, rows| {
            keep_leaves(rows, &mut leaves[tree << k..]);
            points[tree] = point as u64;
        })?;
        let mut delta = points;
        for delta in delta.chunks_exact_mut(n) {
            let switches = network.random(prg);
            row.iter_mut().zip(0..).for_each(|(place, i)| *place = i);
            network.backward(&switches, &mut row);
            delta.iter_mut().zip(row.iter()).for_each(|(d, &p)| *d ^= p);
            rho.push(switches);
        }
        ch.send(FIX, &pack::pack(&delta, k))?;
        ch.flush()?;
        let matrices = leaves.chunks_exact(n << k).zip(delta.chunks_exact(n));
        let outputs = c[window.start * n..].chunks_exact_mut(n);
        for (((matrix, delta), c), rho) in matrices.zip(outputs).zip(&rho[window.start..]) {
            sums(matrix, delta, &mut row, c);
            network.backward(rho, c);
            c.iter_mut()
                .zip(row.iter())
                .for_each(|(c, &r)| *c = c.wrapping_sub(r));
        }
    }
    Ok(Part::Holder { network, rho, c })
}

/// A ring element of every leaf of a tree.
fn keep_leaves(rows: &[Block], leaves: &mut [u64]) {
    let kept = leaves.iter_mut().zip(rows);
    kept.for_each(|(leaf, row)| *leaf = row.0 as u64);
}

/// Sums of the rows and columns of a matrix, of which row `i` is `matrix_i[j ⊕ δ_i]`, `j < n`; `δ` is
/// public.
fn sums(matrix: &[u64], delta: &[u64], rows: &mut [u64], columns: &mut [u64]) {
    let leaves = matrix.len() / delta.len();
    if leaves >= 8 {
        return sums::renamed(matrix, delta, rows, columns);
    }
    columns.fill(0);
    for ((tree, &delta), row) in matrix.chunks_exact(leaves).zip(delta).zip(rows) {
        *row = 0;
        for (j, column) in columns.iter_mut().enumerate() {
            let element = tree[j ^ delta as usize];
            *column = column.wrapping_add(element);
            *row = row.wrapping_add(element);
        }
    }
}
