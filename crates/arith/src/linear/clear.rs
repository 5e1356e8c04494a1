//! A matrix known to the server times vectors known to the client.
//!
//! Computes ⟨W·x⟩ in Z_{2^l} for x of `x_bits`-bit unsigned numbers. The bits x_{j,i} are the choices of OTs
//! whose correlation is the column W_j·2^i (Gilboa's product with a vector; SecureML, Mohassel and Zhang,
//! S&P'17, §IV.A), fixed online:
//!
//! ```text
//! preprocessing (per vector, element j and bit i): one random OT, S sends r_0, r_1, C has c, r_c;  vectors of m words
//!     S → C:  u = r_0 + W_j − r_1  mod 2^{l−i}                     so that  t = r_c + c·u = r_0 + c·W_j
//! online:   C → S:  f = x_{j,i} ⊕ c
//!     x_{j,i}·W_j = f·W_j + (1 − 2f)·c·W_j      C: (1 − 2f)·t       S: f·W_j − (1 − 2f)·r_0
//! ```
//!
//! Preprocessing: Σ_i n·m·(l − i) bits a vector from the server, n·x_bits OTs of ⌈m(l − i)/128⌉ blocks, 1
//! round. Online: n·x_bits bits a vector from the client, 1 round. Kept between the two: as many bits as were
//! sent in preprocessing.
//!
//! Security: u is masked by the pad that C does not have, f by the unseen c.

use volvelle_net::{Channel, Label, Role};
use volvelle_ot::{Cost, Ot, PhasedCost};
use volvelle_prim::{BitVec, Block, pack};

use super::{Matrix, MatrixShape};
use zeroize::Zeroizing;

use crate::error::{ArithError, check_len, check_range};
use crate::pads::{self, Items};
use crate::wire;

const COLUMNS: Label = Label::new("arith/matrix-clear/columns");
const FIX: Label = Label::new("arith/matrix-clear/fix");

/// Prepared products of the server's matrix and the client's vectors.
pub struct MatVecClear {
    shape: MatrixShape,
    batch: usize,
    half: Half,
    /// For bit i, of every element: t at the client, r_0 at the server; m words of l − i bits, packed.
    planes: Zeroizing<Vec<Vec<u8>>>,
}

enum Half {
    Client { choices: Vec<BitVec> },
    Server { matrix: Matrix },
}

/// The OTs of one bit of all elements, and their words.
#[derive(Clone, Copy)]
struct Plane {
    items: Items,
    /// m.
    rows: usize,
    /// l − i.
    bits: u32,
}

impl Plane {
    fn all(shape: &MatrixShape, x_bits: u32, batch: usize) -> Result<Vec<Plane>, ArithError> {
        shape.check()?;
        check_range("bits of a vector's element", 1, shape.ring.bits(), x_bits)?;
        let plane = |i| {
            let bits = shape.ring.bits() - i;
            let width = (shape.rows * bits as usize).div_ceil(128).max(1);
            Plane {
                items: Items {
                    count: shape.cols * batch,
                    ots: 1,
                    width,
                },
                rows: shape.rows,
                bits,
            }
        };
        Ok((0..x_bits).map(plane).collect())
    }

    /// Bytes of the words of `count` OTs.
    fn packed_len(self, count: usize) -> usize {
        pack::packed_len(self.rows * count, self.bits)
    }

    /// The pads of a chunk of OTs as words.
    fn words(self, pads: &[Block]) -> Vec<u64> {
        let mut words = vec![0; pads.len() / self.items.width * self.rows];
        let len = pack::packed_len(self.rows, self.bits);
        for (pad, words) in pads
            .chunks_exact(self.items.width)
            .zip(words.chunks_exact_mut(self.rows))
        {
            pack::unpack_into(&Block::as_bytes(pad)[..len], self.bits, words);
        }
        words
    }
}

impl MatVecClear {
    /// Prepares `batch` products with vectors of `x_bits`-bit numbers; `matrix` at the server only.
    pub fn prepare(
        ch: &mut Channel,
        ot: &mut Ot,
        shape: &MatrixShape,
        x_bits: u32,
        matrix: Option<&Matrix>,
        batch: usize,
    ) -> Result<MatVecClear, ArithError> {
        let matrix = shape.own_matrix(ot.role(), matrix)?;
        let planes = Plane::all(shape, x_bits, batch)?;
        let (half, planes) = match matrix {
            Some(matrix) => {
                let stored = planes
                    .into_iter()
                    .map(|plane| send_plane(ch, ot, plane, &matrix));
                let stored = stored.collect::<Result<_, _>>()?;
                (Half::Server { matrix }, stored)
            }
            None => {
                let received = planes.into_iter().map(|plane| recv_plane(ch, ot, plane));
                let (choices, stored) =
                    received.collect::<Result<Vec<_>, _>>()?.into_iter().unzip();
                (Half::Client { choices }, stored)
            }
        };
        Ok(MatVecClear {
            shape: *shape,
            batch,
            half,
            planes: Zeroizing::new(planes),
        })
    }

    /// What `prepare` and `run` send and consume.
    pub fn cost(shape: &MatrixShape, x_bits: u32, batch: usize) -> Result<PhasedCost, ArithError> {
        let planes = Plane::all(shape, x_bits, batch)?;
        let ots = shape.cols * batch * planes.len();
        Ok(PhasedCost {
            prep: Cost {
                server_bits: planes
                    .iter()
                    .map(|p| p.packed_len(p.items.count) as u64 * 8)
                    .sum(),
                rounds: 1,
                cots_server: ots as u64,
                ..Cost::default()
            },
            online: Cost {
                client_bits: wire::wire_bools(ots),
                rounds: 1,
                ..Cost::default()
            },
        })
    }

    /// Shares of W·x; `vectors` are the client's, unsigned; the server gives none (an empty slice).
    pub fn run(self, ch: &mut Channel, vectors: &[u64]) -> Result<Vec<u64>, ArithError> {
        let elements = self.shape.cols * self.batch;
        let x_bits = self.planes.len();
        let mut out = vec![0; self.shape.rows * self.batch];
        let fix = match &self.half {
            Half::Client { choices } => {
                check_len("elements of the vectors", elements, vectors.len())?;
                let mut fix = BitVec::zeros(0);
                for (i, choices) in choices.iter().enumerate() {
                    let mut plane = BitVec::from_fn(elements, |e| vectors[e] >> i & 1 == 1);
                    plane.xor_assign(choices);
                    fix.extend_bits(&plane);
                }
                wire::send_bits(ch, FIX, &fix)?;
                fix
            }
            Half::Server { matrix } => {
                check_len("elements of the server's vectors", 0, vectors.len())?;
                let fix = wire::recv_bits(ch, FIX, elements * x_bits)?;
                let number = |e: usize| {
                    (0..x_bits).fold(0, |x, i| x | u64::from(fix.get(i * elements + e)) << i)
                };
                let numbers: Vec<u64> = (0..elements).map(number).collect();
                matrix.multiply_add(self.shape.ring, &numbers, &mut out);
                fix
            }
        };
        for i in 0..x_bits {
            self.add_plane(ch.role(), i, &fix.slice(i * elements, elements), &mut out);
        }
        Ok(out)
    }

    /// Adds ±(1 − 2f)·2^i·(this party's part of c·W_j).
    fn add_plane(&self, role: Role, i: usize, fix: &BitVec, out: &mut [u64]) {
        let rows = self.shape.rows;
        let (bits, ring) = (self.shape.ring.bits() - i as u32, self.shape.ring);
        // Whole bytes at every multiple of 8 elements.
        for (block, elements) in self.planes[i]
            .chunks(pack::packed_len(8 * rows, bits).max(1))
            .enumerate()
        {
            let first = block * 8;
            let count = (fix.len() - first).min(8);
            let mut words = vec![0; count * rows];
            pack::unpack_into(elements, bits, &mut words);
            for (k, words) in words.chunks_exact(rows).enumerate() {
                let vector = (first + k) / self.shape.cols;
                let negative = fix.get(first + k) ^ (role == Role::Server);
                let sign = u64::from(negative).wrapping_neg();
                for (y, w) in out[vector * rows..][..rows].iter_mut().zip(words) {
                    *y = ring.add(*y, ((w << i) ^ sign).wrapping_sub(sign));
                }
            }
        }
    }
}

fn send_plane(
    ch: &mut Channel,
    ot: &mut Ot,
    plane: Plane,
    matrix: &Matrix,
) -> Result<Vec<u8>, ArithError> {
    let mut stored = Vec::with_capacity(plane.packed_len(plane.items.count));
    pads::try_send(ch, ot, plane.items, |ch, start, zeros, ones| {
        let (zeros, mut u) = (plane.words(zeros), plane.words(ones));
        for (e, (r0, u)) in zeros
            .chunks_exact(plane.rows)
            .zip(u.chunks_exact_mut(plane.rows))
            .enumerate()
        {
            let column = matrix.entries[(start + e) % matrix.cols..]
                .iter()
                .step_by(matrix.cols);
            for ((u, r0), &w) in u.iter_mut().zip(r0).zip(column) {
                *u = r0.wrapping_add(w as u64).wrapping_sub(*u);
            }
        }
        pack::pack_append(&zeros, plane.bits, &mut stored);
        let mut message = Vec::with_capacity(plane.packed_len(zeros.len() / plane.rows));
        pack::pack_append(&u, plane.bits, &mut message);
        wire::send_bytes(ch, COLUMNS, &message)
    })?;
    Ok(stored)
}

fn recv_plane(
    ch: &mut Channel,
    ot: &mut Ot,
    plane: Plane,
) -> Result<(BitVec, Vec<u8>), ArithError> {
    let mut stored = Vec::with_capacity(plane.packed_len(plane.items.count));
    let mut all_choices = BitVec::zeros(plane.items.count);
    pads::try_recv(ch, ot, plane.items, |ch, start, choices, pads| {
        let mut words = plane.words(pads);
        let message = wire::recv_bytes(ch, COLUMNS, plane.packed_len(choices.len()))?;
        let mut u = vec![0; words.len()];
        pack::unpack_into(&message, plane.bits, &mut u);
        for (k, &c) in choices.iter().enumerate() {
            let chosen = u64::from(c & 1).wrapping_neg();
            for (t, u) in words[k * plane.rows..][..plane.rows]
                .iter_mut()
                .zip(&u[k * plane.rows..])
            {
                *t = t.wrapping_add(u & chosen);
            }
        }
        pack::pack_append(&words, plane.bits, &mut stored);
        for (k, choices) in choices.chunks(64).enumerate() {
            all_choices.words_mut()[start / 64 + k] = pads::gather_choices(choices);
        }
        Ok(())
    })?;
    Ok((all_choices, stored))
}
