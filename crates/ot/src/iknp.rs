//! IKNP OT extension: correlated OTs from 128 base OTs with symmetric cryptography only.
//!
//! Source: Ishai, Kilian, Nissim, Petrank, CRYPTO 2003 (with the correlation of Asharov, Lindell,
//! Schneider, Zohner, CCS 2013). Semi-honest; assumes a PRG.
//!
//! ```text
//! receiver (base keys k_j^0, k_j^1; choices x)      sender (base keys k_j^{Δ_j})
//! t_j = G(k_j^0)
//! u_j = t_j ⊕ G(k_j^1) ⊕ x      ──u_j──▶            q_j = G(k_j^{Δ_j}) ⊕ Δ_j·u_j = t_j ⊕ Δ_j·x
//! ```
//! for the 128 columns `j`; transposed, row `i` is a COT: `q_i = t_i ⊕ x_i·Δ`.
//! Bits: 128 a COT, from the receiver; one message a chunk of [`CHUNK`] COTs.

use volvelle_net::{Channel, Label};
use volvelle_prim::transpose::transpose_128;
use volvelle_prim::{Block, Prg};
use zeroize::Zeroizing;

use crate::OtError;
use crate::base::COUNT;
use crate::engine::{CotReceiver, CotSender, Supply};

/// COTs a message; an agreement constant.
const CHUNK: usize = 1024;
/// Blocks a column of a chunk.
const COLUMN: usize = CHUNK / 128;
const MATRIX: Label = Label::new("ot/iknp");

type Columns = Vec<Block>;

/// Transposes 128 columns of `COLUMN` blocks to `CHUNK` rows.
fn rows(columns: &Columns, out: &mut Vec<Block>) {
    out.clear();
    for piece in 0..COLUMN {
        let mut tile = std::array::from_fn(|j| columns[j * COLUMN + piece]);
        transpose_128(&mut tile);
        out.extend_from_slice(&tile);
    }
}

/// Hands out buffered rows, refilling when they run out.
fn drain(
    ready: &mut Zeroizing<Vec<Block>>,
    used: &mut usize,
    mut out: &mut [Block],
    mut refill: impl FnMut(&mut Vec<Block>) -> Result<(), OtError>,
) -> Result<(), OtError> {
    while !out.is_empty() {
        if *used == ready.len() {
            refill(ready)?;
            *used = 0;
        }
        let take = out.len().min(ready.len() - *used);
        let (now, later) = out.split_at_mut(take);
        now.copy_from_slice(&ready[*used..*used + take]);
        *used += take;
        out = later;
    }
    Ok(())
}

fn supply(made: u64) -> Supply {
    Supply { made, overhead: 1.0, bits_per_cot: 128.0 }
}

/// COT sender, base-OT receiver.
pub(crate) struct IknpSender {
    delta: Zeroizing<Block>,
    columns: Vec<Prg>,
    ready: Zeroizing<Vec<Block>>,
    used: usize,
    made: u64,
}

impl IknpSender {
    /// From the keys that the bits of `delta` chose.
    pub(crate) fn new(delta: Block, keys: &[Block]) -> Self {
        debug_assert!(delta.lsb() && keys.len() == COUNT);
        Self {
            delta: Zeroizing::new(delta),
            columns: keys.iter().map(|&k| Prg::from_seed(k)).collect(),
            ready: Zeroizing::default(),
            used: 0,
            made: 0,
        }
    }
}

impl CotSender for IknpSender {
    fn delta(&self) -> Block {
        *self.delta
    }

    fn extend(&mut self, ch: &mut Channel, out: &mut [Block]) -> Result<(), OtError> {
        let Self { delta, columns, ready, used, made } = self;
        drain(ready, used, out, |ready| {
            let mut u = vec![Block::ZERO; COUNT * COLUMN];
            ch.recv(MATRIX, Block::as_bytes_mut(&mut u))?;
            let mut q: Zeroizing<Columns> = Zeroizing::new(vec![Block::ZERO; COUNT * COLUMN]);
            for (j, prg) in columns.iter_mut().enumerate() {
                let column = &mut q[j * COLUMN..][..COLUMN];
                prg.fill_blocks(column);
                let bit = (delta.0 >> j & 1) as u8;
                for (q, u) in column.iter_mut().zip(&u[j * COLUMN..]) {
                    *q ^= u.keep_if(bit);
                }
            }
            rows(&q, ready);
            ready.iter_mut().for_each(|q| q.0 &= !1);
            *made += CHUNK as u64;
            Ok(())
        })
    }

    fn supply(&self) -> Supply {
        supply(self.made)
    }
}

/// COT receiver, base-OT sender.
pub(crate) struct IknpReceiver {
    columns: Vec<[Prg; 2]>,
    choices: Prg,
    ready: Zeroizing<Vec<Block>>,
    used: usize,
    made: u64,
}

impl IknpReceiver {
    /// From both keys of every base OT; `choices` gives the choice bits.
    pub(crate) fn new(keys: &[[Block; 2]], choices: Prg) -> Self {
        debug_assert_eq!(keys.len(), COUNT);
        Self {
            columns: keys.iter().map(|pair| pair.map(Prg::from_seed)).collect(),
            choices,
            ready: Zeroizing::default(),
            used: 0,
            made: 0,
        }
    }
}

impl CotReceiver for IknpReceiver {
    fn extend(&mut self, ch: &mut Channel, out: &mut [Block]) -> Result<(), OtError> {
        let Self { columns, choices, ready, used, made } = self;
        drain(ready, used, out, |ready| {
            let mut x = Zeroizing::new([Block::ZERO; COLUMN]);
            choices.fill_blocks(&mut *x);
            let mut t: Zeroizing<Columns> = Zeroizing::new(vec![Block::ZERO; COUNT * COLUMN]);
            let mut u = vec![Block::ZERO; COUNT * COLUMN];
            for (j, [zero, one]) in columns.iter_mut().enumerate() {
                let t = &mut t[j * COLUMN..][..COLUMN];
                let u = &mut u[j * COLUMN..][..COLUMN];
                zero.fill_blocks(t);
                one.fill_blocks(u);
                for ((u, t), x) in u.iter_mut().zip(t).zip(x.iter()) {
                    *u = *u ^ *t ^ *x;
                }
            }
            ch.send(MATRIX, Block::as_bytes(&u))?;
            rows(&t, ready);
            for (i, t) in ready.iter_mut().enumerate() {
                t.0 = t.0 & !1 | x[i / 128].0 >> (i % 128) & 1;
            }
            *made += CHUNK as u64;
            Ok(())
        })
    }

    fn supply(&self) -> Supply {
        supply(self.made)
    }
}
