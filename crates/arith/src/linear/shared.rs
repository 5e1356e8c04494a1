//! A matrix known to the server times shared vectors.
//!
//! Computes ⟨W·x⟩ = W·x_S + ⟨W·x_C⟩ in Z_{2^l}. The cross term's shares are made for random vectors a of the
//! client's, by OTs whose choices are the bits of the weights (two's complement: the top bit i = w − 1 counts
//! −2^i) and whose correlations are a_j·2^i for all vectors of the batch at once (Gilboa; Delphi's split of a
//! linear layer into preprocessing and one message):
//!
//! ```text
//! preprocessing (per weight W_{r,j} and bit i): one random OT, C sends r_0, r_1, S has c, r_c;  a word for each vector
//!     S → C:  f = bit ⊕ c                                         once for all vectors
//!     C → S:  u = r_f + a_j − r_{1⊕f}  mod 2^{l−i}
//!     bit·a_j·2^i:   S: (r_c + bit·u)·2^i       C: −r_f·2^i
//! online:  C → S:  x_C − a                      S: W·(x_S + x_C − a) + its share of W·a       C: its share of W·a
//! ```
//!
//! Preprocessing: m·n·w bits from the server for the whole batch, Σ_i m·n·(l − i) bits a vector from the
//! client; m·n·w OTs of ⌈batch·(l − i)/128⌉ blocks; 2 rounds for each 2^20 blocks of pads (16 MiB). Online:
//! n·l bits a vector from the client, 1 round.
//!
//! Security: f is masked by the unseen c, u by the pad that S does not have, x_C by a.

use volvelle_net::{Channel, Label};
use volvelle_ot::{Cost, Ot, PhasedCost};
use volvelle_prim::{BitVec, Block, Prg, pack};
use zeroize::Zeroizing;

use super::{Matrix, MatrixShape};
use crate::error::{ArithError, check_len};
use crate::ring::Ring;
use crate::wire;

const FIX: Label = Label::new("arith/matrix-shared/fix");
const MASKED: Label = Label::new("arith/matrix-shared/masked");
const OPEN: Label = Label::new("arith/matrix-shared/open");

/// Blocks of pads held at a time; more make more rounds. Both parties must agree on it.
const WAVE_BLOCKS: usize = 1 << 20;

/// OTs of a message at most; a multiple of 8, so that messages are whole bytes.
const PART_OTS: usize = 1 << 10;

/// Prepared products of the server's matrix and shared vectors.
pub struct MatVecShared {
    shape: MatrixShape,
    batch: usize,
    /// This party's shares of W·a.
    share: Vec<u64>,
    half: Half,
}

enum Half {
    Client { a: Zeroizing<Vec<u64>> },
    Server { matrix: Matrix },
}

/// OTs of one bit of successive weights.
#[derive(Clone, Copy)]
struct Part {
    /// i.
    bit: u32,
    /// The first weight, counted row by row.
    first: usize,
    /// Number of weights.
    count: usize,
    /// l − i.
    bits: u32,
    /// Blocks of a pad.
    width: usize,
}

impl Part {
    fn blocks(self) -> usize {
        self.count * self.width
    }

    /// The parts, cut in waves that hold a limited number of blocks.
    fn waves(shape: &MatrixShape, batch: usize) -> Vec<Vec<Part>> {
        let weights = shape.rows * shape.cols;
        let mut waves = vec![Vec::new()];
        let mut held = 0;
        for bit in 0..shape.weight_bits {
            let bits = shape.ring.bits() - bit;
            let width = (batch * bits as usize).div_ceil(128).max(1);
            let step = (WAVE_BLOCKS / width / 8 * 8).clamp(8, PART_OTS);
            for first in (0..weights).step_by(step) {
                let part = Part {
                    bit,
                    first,
                    count: step.min(weights - first),
                    bits,
                    width,
                };
                if held + part.blocks() > WAVE_BLOCKS && held > 0 {
                    waves.push(Vec::new());
                    held = 0;
                }
                held += part.blocks();
                if let Some(wave) = waves.last_mut() {
                    wave.push(part);
                }
            }
        }
        waves
    }

    /// One pad as a word for each vector.
    fn words(self, pads: &[Block], k: usize, words: &mut [u64]) {
        let pad = Block::as_bytes(&pads[k * self.width..][..self.width]);
        pack::unpack_into(
            &pad[..pack::packed_len(words.len(), self.bits)],
            self.bits,
            words,
        );
    }

    /// Adds ±2^i·words to one row of the results.
    fn accumulate(
        self,
        shape: &MatrixShape,
        k: usize,
        negative: bool,
        words: &[u64],
        out: &mut [u64],
    ) {
        let row = (self.first + k) / shape.cols;
        // The top bit of a two's complement number counts negatively.
        let sign = u64::from(negative ^ (self.bit + 1 == shape.weight_bits)).wrapping_neg();
        for (y, w) in out[row..].iter_mut().step_by(shape.rows).zip(words) {
            *y = shape
                .ring
                .add(*y, ((w << self.bit) ^ sign).wrapping_sub(sign));
        }
    }
}

fn total<T>(wave: &[Part], of: impl Fn(&Part) -> T) -> T
where
    T: std::iter::Sum,
{
    wave.iter().map(of).sum()
}

impl MatVecShared {
    /// Prepares `batch` products; `matrix` at the server only.
    pub fn prepare(
        ch: &mut Channel,
        ot: &mut Ot,
        shape: &MatrixShape,
        matrix: Option<&Matrix>,
        batch: usize,
    ) -> Result<MatVecShared, ArithError> {
        let matrix = shape.own_matrix(ot.role(), matrix)?;
        let mut share = vec![0; shape.rows * batch];
        let half = match matrix {
            Some(matrix) => {
                for wave in Part::waves(shape, batch) {
                    server_wave(ch, ot, shape, &wave, &matrix, batch, &mut share)?;
                }
                Half::Server { matrix }
            }
            None => {
                let mut a = Zeroizing::new(vec![0; shape.cols * batch]);
                Prg::from_os().fill_masked(&mut a, shape.ring.bits());
                for wave in Part::waves(shape, batch) {
                    client_wave(ch, ot, shape, &wave, &a, batch, &mut share)?;
                }
                Half::Client { a }
            }
        };
        Ok(MatVecShared {
            shape: *shape,
            batch,
            share,
            half,
        })
    }

    /// What `prepare` and `run` send and consume.
    pub fn cost(shape: &MatrixShape, batch: usize) -> Result<PhasedCost, ArithError> {
        shape.check()?;
        let waves = Part::waves(shape, batch);
        let masked = |part: &Part| wire::wire_bits(part.count * batch, part.bits);
        Ok(PhasedCost {
            prep: Cost {
                client_bits: waves.iter().map(|wave| total(wave, masked)).sum(),
                server_bits: waves
                    .iter()
                    .map(|wave| wire::wire_bools(total(wave, |p| p.count)))
                    .sum(),
                rounds: 2 * waves.len() as u64,
                cots_client: waves
                    .iter()
                    .map(|wave| total(wave, |p| p.count as u64))
                    .sum(),
                ..Cost::default()
            },
            online: Cost {
                client_bits: wire::wire_bits(shape.cols * batch, shape.ring.bits()),
                rounds: 1,
                ..Cost::default()
            },
        })
    }

    /// Shares of W·x from shares of x.
    pub fn run(self, ch: &mut Channel, vectors: &[u64]) -> Result<Vec<u64>, ArithError> {
        let MatrixShape { cols, ring, .. } = self.shape;
        let mut share = self.share;
        check_len("elements of the vectors", cols * self.batch, vectors.len())?;
        match self.half {
            Half::Client { a } => {
                let masked: Vec<u64> = vectors
                    .iter()
                    .zip(a.iter())
                    .map(|(&x, &a)| ring.sub(x, a))
                    .collect();
                wire::send_bytes(ch, OPEN, &wire::pack_words(ring, &masked))?;
            }
            Half::Server { matrix } => {
                let bytes =
                    wire::recv_bytes(ch, OPEN, pack::packed_len(vectors.len(), ring.bits()))?;
                let masked = wire::unpack_words(ring, &bytes, vectors.len());
                let sums: Vec<u64> = vectors
                    .iter()
                    .zip(&masked)
                    .map(|(&x, &d)| ring.add(x, d))
                    .collect();
                matrix.multiply_add(ring, &sums, &mut share);
            }
        }
        Ok(share)
    }
}

fn server_wave(
    ch: &mut Channel,
    ot: &mut Ot,
    shape: &MatrixShape,
    wave: &[Part],
    matrix: &Matrix,
    batch: usize,
    share: &mut [u64],
) -> Result<(), ArithError> {
    let mut choices = Zeroizing::new(vec![0u8; total(wave, |p| p.count)]);
    let mut pads = Zeroizing::new(vec![Block::ZERO; total(wave, |p| p.blocks())]);
    let (mut choice_rest, mut pad_rest) = (choices.as_mut_slice(), pads.as_mut_slice());
    let mut bits = BitVec::zeros(total(wave, |p| p.count));
    let mut next = 0;
    for part in wave {
        let (c, p);
        (c, choice_rest) = choice_rest.split_at_mut(part.count);
        (p, pad_rest) = pad_rest.split_at_mut(part.blocks());
        ot.recv_random(ch, part.width, c, p)?;
        for w in &matrix.entries[part.first..][..part.count] {
            bits.set(next, w >> part.bit & 1 == 1);
            next += 1;
        }
    }
    let fix = BitVec::from_fn(choices.len(), |i| bits.get(i) ^ (choices[i] & 1 == 1));
    wire::send_bits(ch, FIX, &fix)?;

    let (mut pads, mut first) = (pads.as_slice(), 0);
    let (mut own, mut word) = (vec![0; batch], vec![0; PART_OTS * batch]);
    for part in wave {
        let message =
            wire::recv_bytes(ch, MASKED, pack::packed_len(part.count * batch, part.bits))?;
        word.resize(part.count * batch, 0);
        pack::unpack_into(&message, part.bits, &mut word);
        for (k, u) in word.chunks_exact(batch.max(1)).enumerate() {
            part.words(pads, k, &mut own);
            let chosen = u64::from(bits.get(first + k)).wrapping_neg();
            for (own, u) in own.iter_mut().zip(u) {
                *own = own.wrapping_add(u & chosen);
            }
            part.accumulate(shape, k, false, &own, share);
        }
        pads = &pads[part.blocks()..];
        first += part.count;
    }
    Ok(())
}

fn client_wave(
    ch: &mut Channel,
    ot: &mut Ot,
    shape: &MatrixShape,
    wave: &[Part],
    a: &[u64],
    batch: usize,
    share: &mut [u64],
) -> Result<(), ArithError> {
    let blocks = total(wave, |p| p.blocks());
    let mut zeros = Zeroizing::new(vec![Block::ZERO; blocks]);
    let mut ones = Zeroizing::new(vec![Block::ZERO; blocks]);
    let mut at = 0;
    for part in wave {
        let range = at..at + part.blocks();
        ot.send_random(ch, part.width, &mut zeros[range.clone()], &mut ones[range])?;
        at += part.blocks();
    }
    let fix = wire::recv_bits(ch, FIX, total(wave, |p| p.count))?;

    let (mut zeros, mut ones, mut first) = (zeros.as_slice(), ones.as_slice(), 0);
    let (mut r0, mut r1) = (vec![0; batch], vec![0; batch]);
    for part in wave {
        let mut message = vec![0; part.count * batch];
        for (k, u) in message.chunks_exact_mut(batch.max(1)).enumerate() {
            part.words(zeros, k, &mut r0);
            part.words(ones, k, &mut r1);
            swap_if(fix.get(first + k), &mut r0, &mut r1);
            let elements = a[(part.first + k) % shape.cols..]
                .iter()
                .step_by(shape.cols);
            for (((u, r_f), r_other), a) in u.iter_mut().zip(&r0).zip(&r1).zip(elements) {
                *u = r_f.wrapping_add(*a).wrapping_sub(*r_other);
            }
            part.accumulate(shape, k, true, &r0, share);
        }
        wire::send_bytes(ch, MASKED, &packed(part.bits, &message)?)?;
        zeros = &zeros[part.blocks()..];
        ones = &ones[part.blocks()..];
        first += part.count;
    }
    Ok(())
}

fn packed(bits: u32, words: &[u64]) -> Result<Vec<u8>, ArithError> {
    Ok(wire::pack_words(Ring::new(bits)?, words))
}

/// Exchanges two slices if `swap`, at no difference in time.
fn swap_if(swap: bool, x: &mut [u64], y: &mut [u64]) {
    let chosen = u64::from(swap).wrapping_neg();
    for (x, y) in x.iter_mut().zip(y) {
        let t = (*x ^ *y) & chosen;
        *x ^= t;
        *y ^= t;
    }
}
