//! Secret-shared permutation of vectors of ring elements (Chase, Ghosh, Poburinnaya, ASIACRYPT 2020; as
//! ROTL, PoPETs 2026, §2.7 has it).
//!
//! The holder `H` of a permutation `π` and the owner `O` of a vector `x ∈ Z_{2^l}^n` come to share
//! `π(x) = (x_π(0), x_π(1), …)`. In preprocessing `π` is not known yet: `H` draws a random `ρ` in its
//! place. `O` has the roots of `n` punctured PRFs of `2^k ≥ n` leaves, `H` all leaves of the `i`-th but
//! that at a random point `p_i`. Opening `δ_i = p_i ⊕ ρ(i)` renames the leaves of tree `i` so that the
//! one that `H` lacks is number `ρ(i)`: a matrix `u` of which `H` lacks `u_(i,ρ(i))`. `O` computes the
//! sums `r_i` of its rows and `a_j` of its columns, `H` the same with any constants for what it lacks.
//! They cancel in `c_i = a*_ρ(i) − r*_i = a_ρ(i) − r_i`, which turns `ρ(x − a)` into `ρ(x) − r`.
//!
//! ```text
//!     O                                                H
//!     preprocessing:
//!     n punctured PRFs, all leaves         ◀──▶        points p_i, all leaves but those
//!                                   ◀────────          δ_i = p_i ⊕ ρ(i)       (n·k bits)
//!     r, a                                             c = ρ(a*) − r*
//!     online:
//!     x − a             (n·l bits)  ────────▶
//!                                   ◀────────          σ = ρ⁻¹∘π              (n·k bits)
//!     σ(r)                                             σ(ρ(x − a) + c)
//! ```
//!
//! If `x` is shared, `H` adds `π` of its own share.
//!
//! Preprocessing: `128·n(k − 1) + n·k` bits, `n·k` OTs, 2 rounds (for every [`WINDOW`] of leaves, which
//! `O` keeps until `δ` comes); `2n·2^k` AES and `4n²` additions. Online: 1 round, `n(l + k)` bits.
//!
//! Security (semi-honest): `δ` is hidden from `O` by `p`, `σ` by `ρ`; `x − a` is masked by the leaves
//! that `H` lacks, one in every column. `H` applies `ρ` and `π` by a sorting network ([`oblivious`]).
//!
//! [`oblivious`]: crate::oblivious

use std::ops::Range;

use volvelle_net::{Channel, Label, Role};
use volvelle_ot::{Cost, Ot, PhasedCost};
use volvelle_prim::{Block, Prg, mask, pack, sums};
use zeroize::Zeroizing;

use crate::LutError;
use crate::exchange::{Plan, Steps, exchange, ranges};
use crate::oblivious::{Network, Switches};
use crate::rotate::{check_shares, mirror};
use crate::shape::{check_batch, check_bits};

const FIX: Label = Label::new("lut/permute-fix");
const LABEL: Label = Label::new("lut/permute");

/// Most elements of a vector to permute: work is quadratic.
pub const MAX_PERMUTED: usize = 1024;

/// Leaves that are kept at a time: 64 MiB of them. An agreement parameter.
const WINDOW: usize = 1 << 23;

/// What is permuted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PermuteShape {
    /// `n`, the elements of a vector; `2..=`[`MAX_PERMUTED`].
    pub len: usize,
    /// `l`, the bits of an element of `Z_{2^l}`; `1..=64`.
    pub bits: u32,
    /// Who knows the permutations.
    pub holder: Role,
}

impl PermuteShape {
    fn check(self) -> Result<(), LutError> {
        check_bits(self.bits)?;
        if (2..=MAX_PERMUTED).contains(&self.len) {
            Ok(())
        } else {
            Err(LutError::VectorSize {
                max: MAX_PERMUTED,
                got: self.len,
            })
        }
    }

    /// `k`: bits of a place, and levels of a tree.
    fn log(self) -> u32 {
        self.len.next_power_of_two().ilog2()
    }

    /// Permutations prepared at once.
    fn window(self) -> usize {
        (WINDOW / (self.len << self.log())).max(1)
    }

    /// Bytes of the places of some permutations: `δ`, or `σ`.
    fn places_bytes(self, count: usize) -> usize {
        pack::packed_len(count * self.len, self.log())
    }

    /// Bytes of some masked vectors.
    fn vector_bytes(self, count: usize) -> usize {
        pack::packed_len(count * self.len, self.bits)
    }
}

/// A batch of prepared permutations, each used once.
pub struct Permute {
    shape: PermuteShape,
    batch: usize,
    part: Part,
}

/// What is kept of the preprocessing, `n` elements a permutation.
enum Part {
    Owner {
        a: Zeroizing<Vec<u64>>,
        r: Zeroizing<Vec<u64>>,
    },
    Holder {
        network: Network,
        rho: Vec<Switches>,
        c: Zeroizing<Vec<u64>>,
    },
}

impl Permute {
    /// Prepares `batch` permutations. Both parties call this with the same arguments.
    ///
    /// # Errors
    /// If a parameter is out of range, or the peer or OT fails.
    pub fn prepare(
        ch: &mut Channel,
        ot: &mut Ot,
        shape: PermuteShape,
        batch: usize,
    ) -> Result<Self, LutError> {
        Self::prepare_with(ch, ot, shape, batch, &mut Prg::from_os())
    }

    pub(crate) fn prepare_with(
        ch: &mut Channel,
        ot: &mut Ot,
        shape: PermuteShape,
        batch: usize,
        prg: &mut Prg,
    ) -> Result<Self, LutError> {
        shape.check()?;
        check_batch(batch)?;
        let part = ch.span("permute-prepare", |ch| {
            if ch.role() == shape.holder {
                prepare_holder(ch, ot, shape, batch, prg)
            } else {
                prepare_owner(ch, ot, shape, batch)
            }
        })?;
        Ok(Self { shape, batch, part })
    }

    /// What preparing and permuting a batch sends and consumes, exactly.
    #[must_use]
    pub fn cost(shape: PermuteShape, batch: usize) -> PhasedCost {
        let trees = (batch * shape.len) as u64;
        let fixes = ranges(batch, shape.window()).map(|w| shape.places_bytes(w.len()) as u64);
        // A tree of one level needs no message, and then nothing is waited for.
        let windows = batch.div_ceil(shape.window()) as u64;
        let rounds = if shape.log() > 1 { 2 * windows } else { 1 };
        let prep = Cost {
            client_bits: 128 * trees * u64::from(shape.log() - 1),
            server_bits: 8 * fixes.sum::<u64>(),
            rounds,
            cots_client: trees * u64::from(shape.log()),
            ..Cost::default()
        };
        let online = ranges(batch, chunk(shape)).map(|c| Cost {
            client_bits: 8 * shape.vector_bytes(c.len()) as u64,
            server_bits: 8 * shape.places_bytes(c.len()) as u64,
            ..Cost::default()
        });
        let online = Cost {
            rounds: plan(shape, batch).rounds(),
            ..online.sum()
        };
        match shape.holder {
            Role::Server => PhasedCost { prep, online },
            Role::Client => PhasedCost {
                prep: mirror(prep),
                online: mirror(online),
            },
        }
    }

    /// Number of prepared permutations.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "a batch is never empty")]
    pub fn len(&self) -> usize {
        self.batch
    }

    /// Permutes every vector: place `i` gets element `π(i)`. `permutations` is `π(0), π(1), …` of each
    /// vector from the holder, empty from the owner; `shares` this party's additive shares of the
    /// vectors, one after the other (zeros from a party that has no part in them). Returns this
    /// party's shares of the permuted vectors.
    ///
    /// # Errors
    /// If the arguments do not fit what was prepared, or the peer fails.
    pub fn permute(
        self,
        ch: &mut Channel,
        permutations: &[u32],
        shares: &[u64],
    ) -> Result<Vec<u64>, LutError> {
        let (shape, total) = (self.shape, self.batch * self.shape.len);
        let expected = match self.part {
            Part::Holder { .. } => total,
            Part::Owner { .. } => 0,
        };
        if permutations.len() != expected {
            return Err(LutError::SecretCount {
                what: "places of permutations",
                expected,
                got: permutations.len(),
            });
        }
        check_shares(total, shares)?;
        let mut moving = Moving {
            sigma: Zeroizing::new(vec![0; expected]),
            outputs: vec![0; total],
            received: Zeroizing::new(Vec::new()),
            bad_place: None,
            prepared: self,
            shares,
        };
        moving.route(permutations)?;
        let plan = plan(shape, moving.prepared.batch);
        ch.span("permute", |ch| exchange(ch, &plan, &mut moving))?;
        match moving.bad_place {
            Some(got) => Err(LutError::PeerPlace {
                len: shape.len,
                got,
            }),
            None => Ok(moving.outputs),
        }
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
    let mut leaves = Zeroizing::new(vec![0; shape.window().min(batch) * (n << k)]);
    for window in ranges(batch, shape.window()) {
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
    let mut leaves = Zeroizing::new(vec![0; shape.window().min(batch) * (n << k)]);
    for window in ranges(batch, shape.window()) {
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

/// `to += from`.
fn add(to: &mut [u64], from: &[u64]) {
    to.iter_mut()
        .zip(from)
        .for_each(|(to, &from)| *to = to.wrapping_add(from));
}

/// Permutations a frame of the online phase, a multiple of 8. An agreement parameter.
fn chunk(shape: PermuteShape) -> usize {
    ((1 << 14) >> shape.log()).max(8)
}

fn plan(shape: PermuteShape, batch: usize) -> Plan {
    let chunk = chunk(shape);
    Plan {
        batch,
        chunk,
        steps: 1,
        largest_frame: shape.vector_bytes(chunk).max(shape.places_bytes(chunk)),
    }
}

/// The online phase of one party.
struct Moving<'a> {
    prepared: Permute,
    shares: &'a [u64],
    /// Holder: `σ`, public once sent.
    sigma: Zeroizing<Vec<u64>>,
    outputs: Vec<u64>,
    received: Zeroizing<Vec<u64>>,
    /// Owner: a place from the peer that is none.
    bad_place: Option<u64>,
}

impl Moving<'_> {
    /// Holder: `σ(i) = ρ⁻¹(π(i))`, and `π` of the own shares.
    fn route(&mut self, permutations: &[u32]) -> Result<(), LutError> {
        let Part::Holder { network, rho, .. } = &self.prepared.part else {
            return Ok(());
        };
        let n = self.prepared.shape.len;
        self.outputs.copy_from_slice(self.shares);
        let secrets = permutations.chunks_exact(n).zip(rho);
        let moved = self.sigma.chunks_exact_mut(n);
        let moved = moved.zip(self.outputs.chunks_exact_mut(n));
        for (which, ((permutation, rho), (sigma, own))) in secrets.zip(moved).enumerate() {
            let switches = network.switches(permutation);
            let Some(pi) = switches else {
                return Err(LutError::NotAPermutation { which });
            };
            sigma.iter_mut().zip(0..).for_each(|(s, i)| *s = i);
            network.forward(rho, sigma);
            network.backward(&pi, sigma);
            network.backward(&pi, own);
        }
        Ok(())
    }

    fn elements(&self, vectors: &Range<usize>) -> Range<usize> {
        let n = self.prepared.shape.len;
        vectors.start * n..vectors.end * n
    }
}

impl Steps for Moving<'_> {
    fn label(&self, _: usize) -> Label {
        LABEL
    }

    fn incoming(&self, _: usize, count: usize) -> usize {
        match self.prepared.part {
            Part::Holder { .. } => self.prepared.shape.vector_bytes(count),
            Part::Owner { .. } => self.prepared.shape.places_bytes(count),
        }
    }

    fn make(&mut self, _: usize, vectors: Range<usize>, frame: &mut Vec<u8>) {
        let (shape, at) = (self.prepared.shape, self.elements(&vectors));
        match &self.prepared.part {
            Part::Holder { .. } => pack::pack_append(&self.sigma[at], shape.log(), frame),
            Part::Owner { a, .. } => {
                let masked = self.shares[at.clone()].iter().zip(&a[at]);
                let masked: Vec<u64> = masked.map(|(&x, &a)| x.wrapping_sub(a)).collect();
                pack::pack_append(&masked, shape.bits, frame);
            }
        }
    }

    fn take(&mut self, _: usize, vectors: Range<usize>, frame: &[u8]) {
        let (shape, at) = (self.prepared.shape, self.elements(&vectors));
        let n = shape.len;
        self.received.resize(at.len(), 0);
        let outputs = self.outputs[at.clone()].chunks_exact_mut(n);
        match &self.prepared.part {
            Part::Holder { network, rho, c } => {
                pack::unpack_into(frame, shape.bits, &mut self.received);
                let moved = self.received.chunks_exact_mut(n).zip(&rho[vectors]);
                let fixed = c[at.clone()].chunks_exact(n);
                let sigma = self.sigma[at].chunks_exact(n);
                for ((((x, rho), c), sigma), output) in moved.zip(fixed).zip(sigma).zip(outputs) {
                    network.backward(rho, x);
                    add(x, c);
                    for (output, &place) in output.iter_mut().zip(sigma) {
                        *output = output.wrapping_add(x[place as usize]) & mask(shape.bits);
                    }
                }
            }
            Part::Owner { r, .. } => {
                pack::unpack_into(frame, shape.log(), &mut self.received);
                let moved = self.received.chunks_exact(n).zip(r[at].chunks_exact(n));
                for ((sigma, r), output) in moved.zip(outputs) {
                    for (output, &place) in output.iter_mut().zip(sigma) {
                        match r.get(place as usize) {
                            Some(&r) => *output = r & mask(shape.bits),
                            None => self.bad_place = Some(place),
                        }
                    }
                }
            }
        }
    }
}
