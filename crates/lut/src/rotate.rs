//! Secret-shared rotation of vectors of ring elements (ROTL, PoPETs 2026, §4 and Fig. 9).
//!
//! The holder `H` of a shift `s` and the owner `O` of a vector `x ∈ Z_{2^l}^n` come to share `R_s(x)`,
//! where `R_s` moves element `i` to place `i + s mod n`. `O` has the root of a punctured PRF with `n`
//! leaves, `H` all leaves but one, at a random point `p`. Leaf `t` gives a column `d_t ∈ Z_{2^l}^n`.
//! `O` computes `r = Σ d_t` and `a = Σ R_{−t}(d_t)`, `H` the same sums `r*`, `a*` with any constant in
//! the place of `d_p`. As `R_p` takes `R_{−p}(d_p)` back to `d_p`, `c = R_p(a*) − r*` is what turns
//! `R_p(x − a)` into `R_p(x) − r`. A single punctured PRF thus serves the whole vector.
//!
//! ```text
//!     O                                                H
//!     preprocessing:
//!     punctured PRF, O knows all leaves    ◀──▶        point p, all leaves but p
//!     r, a                                             c = R_p(a*) − r*
//!     online:
//!     x − a             (n·l bits)  ────────▶
//!                                   ◀────────          σ = s − p mod n         (k bits)
//!     R_σ(r)                                           R_σ(R_p(x − a) + c)
//! ```
//!
//! If `x` is shared, `H` adds `R_s` of its own share. If the shift is shared too, `s = s_C + s_S`, each
//! party rotates its own share by its own part and then both rotate each other's, one correlation each
//! way, in the same round.
//!
//! Preprocessing, each way used: `128·(k − 1)` bits, `k` OTs, 1 round (none for `k = 1`); `n` leaves,
//! `n²·w/128` AES (`w` = `l` up to 8, 16, 32 or 64) and `2n²` additions. Online: 1 round, `n·l + k`
//! bits each way used.
//!
//! Security (semi-honest): `H` sees `x − a`, which `d_p`, pseudorandom to it, masks; `O` sees `σ`,
//! masked by `p`, which the OTs hide from it.

use std::ops::Range;

use volvelle_net::{Channel, Label, Role};
use volvelle_ot::{Cost, Ot, PhasedCost};
use volvelle_prim::{Block, mask, pack, sums};
use zeroize::Zeroizing;

use crate::LutError;
use crate::exchange::{Plan, Steps, exchange, ranges};
use crate::oblivious::rotate;
use crate::shape::{check_batch, check_bits};

const LABEL: Label = Label::new("lut/rotate");

/// Largest `k` of a vector of `2^k` elements to rotate: work is quadratic.
pub const MAX_LOG_ROTATED: u32 = 11;

/// Trees a call of the punctured PRF; a multiple of its groups of eight. An agreement parameter.
const TREES: usize = 512;

/// Who knows the shifts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Shift {
    /// One party.
    Held(Role),
    /// Both in part: additive shares mod `n`.
    Shared,
}

impl Shift {
    fn holders(self) -> &'static [Role] {
        match self {
            Self::Held(Role::Client) => &[Role::Client],
            Self::Held(Role::Server) => &[Role::Server],
            Self::Shared => &[Role::Client, Role::Server],
        }
    }

    fn holds(self, role: Role) -> bool {
        self.holders().contains(&role)
    }
}

/// What is rotated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RotateShape {
    /// `k`, where vectors have `n = 2^k` elements; `1..=`[`MAX_LOG_ROTATED`].
    pub log_len: u32,
    /// `l`, the bits of an element of `Z_{2^l}`; `1..=64`.
    pub bits: u32,
    /// Who knows the shifts.
    pub shift: Shift,
}

impl RotateShape {
    fn check(self) -> Result<(), LutError> {
        check_bits(self.bits)?;
        if (1..=MAX_LOG_ROTATED).contains(&self.log_len) {
            Ok(())
        } else {
            Err(LutError::VectorSize {
                max: 1 << MAX_LOG_ROTATED,
                got: 1usize.checked_shl(self.log_len).unwrap_or(usize::MAX),
            })
        }
    }

    fn len(self) -> usize {
        1 << self.log_len
    }

    /// Bytes of an element of a column: as many as a machine word that holds it.
    fn element_bytes(self) -> usize {
        (self.bits as usize).div_ceil(8).next_power_of_two()
    }

    /// Blocks that a leaf is expanded to.
    fn leaf_blocks(self) -> usize {
        (self.len() * self.element_bytes()).div_ceil(16)
    }
}

/// A batch of prepared rotations, each used once.
pub struct Rotate {
    shape: RotateShape,
    role: Role,
    batch: usize,
    /// For vectors that the peer rotates.
    owned: Option<Owned>,
    /// For vectors that this party rotates.
    held: Option<Held>,
}

/// The owner's `a` and `r`, `n` elements a rotation.
struct Owned {
    a: Zeroizing<Vec<u64>>,
    r: Zeroizing<Vec<u64>>,
}

/// The holder's `p` and `c`.
struct Held {
    p: Zeroizing<Vec<u64>>,
    c: Zeroizing<Vec<u64>>,
}

impl Rotate {
    /// Prepares `batch` rotations. Both parties call this with the same arguments.
    ///
    /// # Errors
    /// If a parameter is out of range, or the peer or OT fails.
    pub fn prepare(
        ch: &mut Channel,
        ot: &mut Ot,
        shape: RotateShape,
        batch: usize,
    ) -> Result<Self, LutError> {
        shape.check()?;
        check_batch(batch)?;
        let mut prepared = Self {
            shape,
            role: ch.role(),
            batch,
            owned: None,
            held: None,
        };
        ch.span("rotate-prepare", |ch| {
            for &holder in shape.shift.holders() {
                if ch.role() == holder {
                    prepared.held = Some(Held::prepare(ch, ot, shape, batch)?);
                } else {
                    prepared.owned = Some(Owned::prepare(ch, ot, shape, batch)?);
                }
            }
            Ok(prepared)
        })
    }

    /// What preparing and rotating a batch sends and consumes, exactly.
    ///
    /// # Panics
    /// If the shape is not one that [`Self::prepare`] would take.
    #[must_use]
    pub fn cost(shape: RotateShape, batch: usize) -> PhasedCost {
        assert!(
            shape.check().is_ok(),
            "cost of a shape that cannot be prepared: {shape:?}"
        );
        let trees = batch as u64 * u64::from(shape.log_len);
        let mut cost = PhasedCost::default();
        for &holder in shape.shift.holders() {
            let prep = Cost {
                client_bits: 128 * (trees - batch as u64),
                rounds: u64::from(shape.log_len > 1),
                cots_client: trees,
                ..Cost::default()
            };
            let online = ranges(batch, chunk(shape)).map(|c| Cost {
                client_bits: 8 * vector_bytes(shape, c.len()) as u64,
                server_bits: 8 * shift_bytes(shape, c.len()) as u64,
                ..Cost::default()
            });
            let mut both = PhasedCost {
                prep,
                online: online.sum(),
            };
            if holder == Role::Client {
                both = PhasedCost {
                    prep: mirror(both.prep),
                    online: mirror(both.online),
                };
            }
            cost = cost.then(both);
        }
        cost.online.rounds = plan(shape, batch).rounds();
        cost
    }

    /// Number of prepared rotations.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "a batch is never empty")]
    pub fn len(&self) -> usize {
        self.batch
    }

    /// Rotates every vector: element `i` moves to place `i + shift mod n`. `shares` is this party's
    /// additive shares of the vectors one after the other (zeros from a party that has no part in
    /// them), `shifts` its shifts, or its shares of them, modulo `n`; empty if the other holds them.
    /// Returns this party's shares of the rotated vectors.
    ///
    /// # Errors
    /// If the arguments do not fit what was prepared, or the peer fails.
    pub fn rotate(
        self,
        ch: &mut Channel,
        shifts: &[u64],
        shares: &[u64],
    ) -> Result<Vec<u64>, LutError> {
        let expected = if self.held.is_some() { self.batch } else { 0 };
        if shifts.len() != expected {
            return Err(LutError::SecretCount {
                what: "shifts",
                expected,
                got: shifts.len(),
            });
        }
        check_shares(self.batch * self.shape.len(), shares)?;
        let plan = plan(self.shape, self.batch);
        let mut turning = Turning {
            own: Zeroizing::new(shares.to_vec()),
            outputs: vec![0; shares.len()],
            scratch: Zeroizing::new(vec![0; self.shape.len()]),
            peer: Zeroizing::new(Vec::new()),
            prepared: self,
            shifts,
        };
        turning.start();
        ch.span("rotate", |ch| exchange(ch, &plan, &mut turning))?;
        Ok(turning.outputs)
    }
}

/// Checks that there is a share of every element.
pub(crate) fn check_shares(expected: usize, shares: &[u64]) -> Result<(), LutError> {
    if shares.len() != expected {
        return Err(LutError::VectorLength {
            expected,
            got: shares.len(),
        });
    }
    Ok(())
}

/// The same with the parties' parts exchanged.
pub(crate) fn mirror(cost: Cost) -> Cost {
    Cost {
        client_bits: cost.server_bits,
        server_bits: cost.client_bits,
        cots_client: cost.cots_server,
        cots_server: cost.cots_client,
        ..cost
    }
}

impl Owned {
    fn prepare(
        ch: &mut Channel,
        ot: &mut Ot,
        shape: RotateShape,
        batch: usize,
    ) -> Result<Self, LutError> {
        let n = shape.len();
        let mut a = Zeroizing::new(vec![0; batch * n]);
        let mut r = a.clone();
        for trees in ranges(batch, TREES) {
            let (width, first) = (shape.leaf_blocks(), trees.start);
            ot.send_pprf(ch, shape.log_len, width, trees.len(), &mut |i, leaves| {
                let at = (first + i) * n..(first + i + 1) * n;
                sums::rotated(
                    leaves,
                    shape.element_bytes(),
                    &mut r[at.clone()],
                    &mut a[at],
                );
            })?;
        }
        Ok(Self { a, r })
    }
}

impl Held {
    fn prepare(
        ch: &mut Channel,
        ot: &mut Ot,
        shape: RotateShape,
        batch: usize,
    ) -> Result<Self, LutError> {
        let n = shape.len();
        let mut p = Zeroizing::new(vec![0; batch]);
        let mut c = Zeroizing::new(vec![0; batch * n]);
        let mut r = Zeroizing::new(vec![0; n]);
        let mut scratch = r.clone();
        for trees in ranges(batch, TREES) {
            let (width, first) = (shape.leaf_blocks(), trees.start);
            let mut visit = |i: usize, point: usize, leaves: &mut [Block]| {
                let c = &mut c[(first + i) * n..][..n];
                sums::rotated(leaves, shape.element_bytes(), &mut r, c);
                rotate(c, point as u64, &mut scratch);
                c.iter_mut()
                    .zip(r.iter())
                    .for_each(|(c, &r)| *c = c.wrapping_sub(r));
                p[first + i] = point as u64;
            };
            ot.recv_pprf(ch, shape.log_len, width, trees.len(), &mut visit)?;
        }
        Ok(Self { p, c })
    }
}

/// Rotations a frame of the online phase, a multiple of 8. An agreement parameter.
fn chunk(shape: RotateShape) -> usize {
    ((1 << 14) >> shape.log_len).max(8)
}

fn plan(shape: RotateShape, batch: usize) -> Plan {
    let chunk = chunk(shape);
    Plan {
        batch,
        chunk,
        steps: 1,
        largest_frame: vector_bytes(shape, chunk) + shift_bytes(shape, chunk),
    }
}

/// Bytes of an owner's masked vectors.
fn vector_bytes(shape: RotateShape, count: usize) -> usize {
    pack::packed_len(count << shape.log_len, shape.bits)
}

/// Bytes of a holder's masked shifts.
fn shift_bytes(shape: RotateShape, count: usize) -> usize {
    pack::packed_len(count, shape.log_len)
}

/// The online phase of one party.
struct Turning<'a> {
    prepared: Rotate,
    shifts: &'a [u64],
    /// Own shares, rotated by the own shifts.
    own: Zeroizing<Vec<u64>>,
    outputs: Vec<u64>,
    peer: Zeroizing<Vec<u64>>,
    scratch: Zeroizing<Vec<u64>>,
}

impl Turning<'_> {
    fn start(&mut self) {
        let n = self.prepared.shape.len();
        for (vector, &shift) in self.own.chunks_exact_mut(n).zip(self.shifts) {
            rotate(vector, shift, &mut self.scratch);
        }
    }

    fn elements(&self, lookups: &Range<usize>) -> Range<usize> {
        let k = self.prepared.shape.log_len;
        lookups.start << k..lookups.end << k
    }

    /// Owner: `x − a`.
    fn mask_vectors(&self, at: Range<usize>, frame: &mut Vec<u8>) {
        if let Some(Owned { a, .. }) = &self.prepared.owned {
            let masked = self.own[at.clone()].iter().zip(&a[at]);
            let masked: Vec<u64> = masked.map(|(&x, &a)| x.wrapping_sub(a)).collect();
            pack::pack_append(&masked, self.prepared.shape.bits, frame);
        }
    }

    /// Holder: `σ = s − p`.
    fn corrections(&self, lookups: Range<usize>) -> Vec<u64> {
        let Some(Held { p, .. }) = &self.prepared.held else {
            return vec![];
        };
        let shifts = self.shifts[lookups.clone()].iter().zip(&p[lookups]);
        let ring = mask(self.prepared.shape.log_len);
        shifts.map(|(&s, &p)| s.wrapping_sub(p) & ring).collect()
    }

    /// Holder: adds `R_σ(R_p(x − a) + c)`.
    fn take_vectors(&mut self, lookups: Range<usize>, frame: &[u8]) {
        let (at, corrections) = (self.elements(&lookups), self.corrections(lookups.clone()));
        let (n, bits) = (self.prepared.shape.len(), self.prepared.shape.bits);
        let Some(Held { p, c }) = &self.prepared.held else {
            return;
        };
        self.peer.resize(at.len(), 0);
        pack::unpack_into(frame, bits, &mut self.peer);
        let vectors = self
            .peer
            .chunks_exact_mut(n)
            .zip(c[at.clone()].chunks_exact(n));
        let outputs = self.outputs[at].chunks_exact_mut(n);
        let secrets = p[lookups].iter().zip(corrections);
        for (((vector, c), output), (&p, sigma)) in vectors.zip(outputs).zip(secrets) {
            rotate(vector, p, &mut self.scratch);
            for (value, &c) in vector.iter_mut().zip(c) {
                *value = value.wrapping_add(c);
            }
            vector.rotate_right(sigma as usize);
            add(output, vector);
        }
    }

    /// Owner: adds `R_σ(r)`, the corrections being public now.
    fn open_corrections(&mut self, lookups: Range<usize>, frame: &[u8]) {
        let (at, n) = (self.elements(&lookups), self.prepared.shape.len());
        let Some(Owned { r, .. }) = &self.prepared.owned else {
            return;
        };
        let mut corrections = vec![0; lookups.len()];
        pack::unpack_into(frame, self.prepared.shape.log_len, &mut corrections);
        let vectors = self.outputs[at.clone()].chunks_exact_mut(n);
        let rows = r[at].chunks_exact(n);
        for ((output, r), sigma) in vectors.zip(rows).zip(corrections) {
            let (start, end) = r.split_at(n - sigma as usize);
            add(&mut output[sigma as usize..], start);
            add(output, end);
        }
    }
}

/// `to += from`, as far as it goes.
fn add(to: &mut [u64], from: &[u64]) {
    to.iter_mut()
        .zip(from)
        .for_each(|(to, &from)| *to = to.wrapping_add(from));
}

impl Steps for Turning<'_> {
    fn label(&self, _: usize) -> Label {
        LABEL
    }

    fn incoming(&self, _: usize, count: usize) -> usize {
        let shape = self.prepared.shape;
        let vectors = if shape.shift.holds(self.prepared.role) {
            vector_bytes(shape, count)
        } else {
            0
        };
        let shifts = if shape.shift.holds(self.prepared.role.other()) {
            shift_bytes(shape, count)
        } else {
            0
        };
        vectors + shifts
    }

    fn make(&mut self, _: usize, lookups: Range<usize>, frame: &mut Vec<u8>) {
        self.mask_vectors(self.elements(&lookups), frame);
        let corrections = self.corrections(lookups);
        if !corrections.is_empty() {
            pack::pack_append(&corrections, self.prepared.shape.log_len, frame);
        }
    }

    fn take(&mut self, _: usize, lookups: Range<usize>, frame: &[u8]) {
        let shape = self.prepared.shape;
        let at = self.elements(&lookups);
        let holds = self.prepared.held.is_some();
        let vectors = if holds {
            vector_bytes(shape, lookups.len())
        } else {
            0
        };
        let (vectors, shifts) = frame.split_at(vectors);
        if holds {
            self.take_vectors(lookups.clone(), vectors);
        }
        if self.prepared.owned.is_some() {
            self.open_corrections(lookups, shifts);
        }
        let outputs = &mut self.outputs[at.clone()];
        if self.prepared.owned.is_none() {
            // Rotated by the whole shift already; an owner's share has gone into the message.
            add(outputs, &self.own[at]);
        }
        outputs.iter_mut().for_each(|x| *x &= mask(shape.bits));
    }
}
