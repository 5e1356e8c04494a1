//! Secret-shared permutation of vectors of ring elements (Chase, Ghosh, Poburinnaya, ASIACRYPT 2020; as
//! ROTL, PoPETs 2026, §2.7 has it).
//!
//! The holder `H` of a permutation `π` and the owner `O` of a vector `x ∈ Z_{2^l}^n` come to share
//! `π(x) = (x_π(0), x_π(1), …)`. In preprocessing `π` is not known yet: `H` draws a random `ρ` in its
//! place, and `O` comes to have random vectors `a` and `r`, `H` the difference `c = ρ(a) − r`, which turns
//! `ρ(x − a)` into `ρ(x) − r`. [`PermuteMethod`] says how: by punctured PRFs ([`trees`]) or by a network
//! of switches ([`switches`]).
//!
//! ```text
//!     O                                                H
//!     preprocessing: a, r                              ρ, c = ρ(a) − r
//!     online:
//!     x − a             (n·l bits)  ────────▶
//!                                   ◀────────          σ = ρ⁻¹∘π              (n·k bits)
//!     σ(r)                                             σ(ρ(x − a) + c)
//! ```
//!
//! If `x` is shared, `H` adds `π` of its own share. Online: 1 round, `n(l + k)` bits, `2^k ≥ n`.
//!
//! Security (semi-honest): `σ` is hidden from `O` by `ρ`, `x` from `H` by `a`. `H` applies `ρ` and `π` to
//! what it has by a sorting network ([`oblivious`](crate::oblivious)).

mod switches;
mod trees;

use std::ops::Range;

use volvelle_net::{Channel, Label, Role};
use volvelle_ot::{Cost, Ot, PhasedCost};
use volvelle_prim::{Prg, mask, pack};
use zeroize::Zeroizing;

use crate::LutError;
use crate::exchange::{Plan, Steps, exchange, ranges};
use crate::oblivious::{Network, Switches};
use crate::rotate::{check_shares, mirror};
use crate::shape::{check_batch, check_bits};

const LABEL: Label = Label::new("lut/permute");

/// How a permutation is prepared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PermuteMethod {
    /// `n` punctured PRFs of `2^k ≥ n` leaves: `128·n(k − 1) + n·k` bits, `n·k` OTs, `2n·2^k` AES; `n` up to
    /// 1024.
    Trees,
    /// A network of `S ≈ n·k(k − 1)/4 + n` switches: `S(l + 1)` bits, `S` OTs, next to no other
    /// computing; `n` up to 65536.
    Switches,
}

impl PermuteMethod {
    /// The one that sends fewer bits, OTs not counted; ties and long vectors go to switches.
    #[must_use]
    pub fn cheapest(len: usize, bits: u32, holder: Role) -> Self {
        let bits_of = |method| {
            let shape = PermuteShape {
                len,
                bits,
                holder,
                method,
            };
            match shape.check() {
                Ok(()) => Permute::cost(shape, 8).prep.bits(),
                Err(_) => u64::MAX,
            }
        };
        if bits_of(Self::Trees) < bits_of(Self::Switches) {
            Self::Trees
        } else {
            Self::Switches
        }
    }

    /// Most elements of a vector.
    #[must_use]
    pub const fn max_len(self) -> usize {
        match self {
            Self::Trees => 1 << 10,
            Self::Switches => 1 << 16,
        }
    }
}

/// What is permuted, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct PermuteShape {
    /// `n`, the elements of a vector; from 2 to [`PermuteMethod::max_len`].
    pub len: usize,
    /// `l`, the bits of an element of `Z_{2^l}`; `1..=64`.
    pub bits: u32,
    /// Who knows the permutations.
    pub holder: Role,
    /// How they are prepared.
    pub method: PermuteMethod,
}

impl PermuteShape {
    fn check(self) -> Result<(), LutError> {
        check_bits(self.bits)?;
        if (2..=self.method.max_len()).contains(&self.len) {
            Ok(())
        } else {
            Err(LutError::VectorSize {
                max: self.method.max_len(),
                got: self.len,
            })
        }
    }

    /// `k`: bits of a place, and levels of a tree.
    fn log(self) -> u32 {
        self.len.next_power_of_two().ilog2()
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

/// What preprocessing makes, `n` elements a permutation.
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
        let part = ch.span("permute-prepare", |ch| match shape.method {
            PermuteMethod::Trees => trees::prepare(ch, ot, shape, batch, prg),
            PermuteMethod::Switches => switches::prepare(ch, ot, shape, batch, prg),
        })?;
        Ok(Self { shape, batch, part })
    }

    /// What preparing and permuting a batch sends and consumes, exactly.
    ///
    /// # Panics
    /// If the shape is not one that [`Self::prepare`] would take.
    #[must_use]
    pub fn cost(shape: PermuteShape, batch: usize) -> PhasedCost {
        assert!(
            shape.check().is_ok(),
            "cost of a shape that cannot be prepared: {shape:?}"
        );
        // As if the server held the permutations.
        let prep = match shape.method {
            PermuteMethod::Trees => trees::cost(shape, batch),
            PermuteMethod::Switches => switches::cost(shape, batch),
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
