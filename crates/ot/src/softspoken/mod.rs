//! SoftSpoken OT extension: correlated OTs from 128 base OTs with symmetric cryptography only.
//!
//! Source: Roy, "SoftSpokenOT", CRYPTO 2022, §3 and §4 (repetition code). Assumes a PRG and the correlation
//! robustness of the trees' hash. For `k = 1` it is IKNP (CRYPTO 2003). Semi-honest, or with the consistency
//! checks of `check` against parties that cheat.
//!
//! Δ is cut into `128/k` pieces of `k` bits. For a piece the receiver knows the `2^k` leaves of a tree,
//! the sender all but leaf Δ_g. With `G` a PRG, every leaf stretched to as many bits as there are OTs:
//!
//! ```text
//! receiver (all leaves s_y)                       sender (all leaves but s_Δ; s'_d = s_{Δ ⊕ d}, d ≠ 0)
//! u_g   = ⊕_y G(s_y)
//! v_g,b = ⊕_{y: y_b = 1} G(s_y)                   w_g,b = ⊕_{d: d_b = 1} G(s'_d) = v_g,b ⊕ Δ_g,b·u_g
//! choices x = u_0;  c_g = u_g ⊕ x  ──c_g, g ≥ 1──▶   w_g,b ⊕ Δ_g,b·c_g = v_g,b ⊕ Δ_g,b·x
//! ```
//! The planes `(g, b)` are the 128 columns of the COT matrix; transposed, row `i` is `q_i = t_i ⊕ x_i·Δ`.
//! Bit 0 of Δ is 1 and carries the choice: plane 0 is `x` at the receiver and zero at the sender.
//!
//! Bits: `128/k − 1` a COT, from the receiver, one message a chunk of 8192; set-up `128·256` once, in
//! one message. Computing: about `2^k/k` AES a COT. With checks: see `check` for the bits; a chunk hands out 128
//! COTs less.

mod check;

use volvelle_net::{Channel, Label};
use volvelle_prim::streams::LeafStreams;
use volvelle_prim::transpose::transpose_columns;
use volvelle_prim::{Block, Lines, Prg, pprf};
use zeroize::Zeroizing;

use check::Rows;

use crate::base::COUNT;
use crate::engine::{CotReceiver, CotSender, CotSource, Supply, hand_out};
use crate::{OtError, Security};

/// COTs a message; an agreement constant.
pub(crate) const CHUNK: usize = 8192;
/// Blocks of a plane of a chunk.
const PLANE: usize = CHUNK / 128;
const SEEDS: Label = Label::new("ot/softspoken/seeds");
const CORRECTION: Label = Label::new("ot/softspoken");

/// Bits `k` of a piece of Δ: more bits, less communication, more computing. A divisor of 8.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Piece {
    /// 127 bits a COT: IKNP.
    One,
    /// 63 bits a COT.
    Two,
    /// 31 bits a COT.
    Four,
    /// 15 bits a COT.
    Eight,
}

impl Piece {
    /// All, smallest first.
    pub const ALL: [Self; 4] = [Self::One, Self::Two, Self::Four, Self::Eight];

    /// `k`.
    #[must_use]
    pub const fn bits(self) -> u32 {
        match self {
            Self::One => 1,
            Self::Two => 2,
            Self::Four => 4,
            Self::Eight => 8,
        }
    }

    const fn pieces(self) -> usize {
        COUNT / self.bits() as usize
    }

    const fn leaves(self) -> usize {
        1 << self.bits()
    }

    /// Bits a COT, semi-honest.
    #[must_use]
    pub const fn bits_per_cot(self) -> u64 {
        self.pieces() as u64 - 1
    }

    /// Bits of the set-up of one direction, base OTs excluded.
    #[must_use]
    pub const fn setup_bits(self, security: Security) -> u64 {
        let check = if security.is_malicious() {
            check::tree_bits(self)
        } else {
            0
        };
        256 * COUNT as u64 + check
    }

    /// Bits of a chunk.
    #[must_use]
    pub const fn chunk_bits(self, security: Security) -> u64 {
        let check = if security.is_malicious() {
            check::CHUNK_BITS
        } else {
            0
        };
        CHUNK as u64 * self.bits_per_cot() + check
    }

    /// COTs that a chunk hands out.
    #[must_use]
    pub const fn chunk_cots(security: Security) -> usize {
        if security.is_malicious() {
            CHUNK - check::SACRIFICED
        } else {
            CHUNK
        }
    }
}

/// Position in Δ of the path bit of `level` (most significant first) of a piece.
const fn delta_bit(k: u32, piece: usize, level: u32) -> usize {
    piece * k as usize + (k - 1 - level) as usize
}

/// The base-OT choices with which the COT sender comes to hold all leaves but Δ's.
pub(crate) fn base_choices(piece: Piece, delta: Block) -> Block {
    let k = piece.bits();
    let mut choices = 0;
    for g in 0..piece.pieces() {
        for level in 0..k {
            let off_path = !(delta.0 >> delta_bit(k, g, level)) & 1;
            choices |= off_path << (g * k as usize + level as usize);
        }
    }
    Block(choices)
}

/// Buffered rows of the last chunk, and room to make the next.
struct Ready {
    rows: Zeroizing<Vec<Block>>,
    /// Rows of a chunk that are handed out.
    handed_out: usize,
    used: usize,
    made: u64,
    /// The 128 planes of a chunk.
    planes: Lines,
    /// A plane's length for every piece: the sums of the trees' leaves, then the corrections.
    sums: Lines,
}

impl Ready {
    fn new(piece: Piece, security: Security) -> Self {
        Self {
            rows: Zeroizing::default(),
            handed_out: Piece::chunk_cots(security),
            used: 0,
            made: 0,
            planes: Lines::zeros(CHUNK),
            sums: Lines::zeros(piece.pieces() * PLANE),
        }
    }

    /// Fills `out` from the buffer; when that is empty `refill` overwrites planes, with room for sums.
    fn drain(
        &mut self,
        mut out: &mut [Block],
        mut refill: impl FnMut(&mut [Block], &mut [Block]) -> Result<(), OtError>,
    ) -> Result<(), OtError> {
        while !out.is_empty() {
            if self.used < self.rows.len() {
                out = hand_out(&self.rows, &mut self.used, out);
                continue;
            }
            refill(&mut self.planes, &mut self.sums)?;
            self.made += CHUNK as u64;
            if out.len() >= CHUNK && self.handed_out == CHUNK {
                // All that is made is wanted: straight into its place.
                let (now, later) = out.split_at_mut(CHUNK);
                transpose_columns(&self.planes, now);
                out = later;
                continue;
            }
            self.rows.resize(CHUNK, Block::ZERO);
            transpose_columns(&self.planes, &mut self.rows);
            if self.handed_out < CHUNK {
                check::drop_masks(&mut self.rows);
            }
            self.used = 0;
        }
        Ok(())
    }

    fn supply(&self, piece: Piece, security: Security) -> Supply {
        let handed_out = self.handed_out as f64;
        Supply {
            made: self.made,
            overhead: CHUNK as f64 / handed_out,
            bits_per_cot: piece.chunk_bits(security) as f64 / handed_out,
        }
    }
}

/// The security that a session with or without checks of rows has.
const fn security(rows: &Option<Rows>) -> Security {
    if rows.is_some() {
        Security::Malicious
    } else {
        Security::SemiHonest
    }
}

/// COT sender, base-OT receiver.
pub(crate) struct SoftSpokenSender {
    piece: Piece,
    delta: Zeroizing<Block>,
    /// Leaves `s'_1 …` of every piece; `s'_0` would be the unknown one.
    leaves: LeafStreams,
    ready: Ready,
    /// In malicious security.
    rows: Option<Rows>,
}

impl SoftSpokenSender {
    /// Receives the trees; `keys` are those that [`base_choices`] picked.
    pub(crate) fn new(
        ch: &mut Channel,
        (piece, security): (Piece, Security),
        delta: Block,
        keys: &[Block],
    ) -> Result<Self, OtError> {
        debug_assert!(delta.lsb() && keys.len() == COUNT);
        let mut masked = [[Block::ZERO; 2]; COUNT];
        ch.recv(SEEDS, Block::as_bytes_mut(masked.as_flattened_mut()))?;
        let choices = base_choices(piece, delta).0;
        let known: Zeroizing<Vec<Block>> = Zeroizing::new(
            (0..COUNT)
                .map(|j| {
                    let side = (choices >> j & 1) as u8;
                    keys[j] ^ masked[j][0].keep_if(1 ^ side) ^ masked[j][1].keep_if(side)
                })
                .collect(),
        );
        let k = piece.bits();
        let point = |g: usize| (delta.0 >> (g * k as usize)) as u32 & ((1 << k) - 1);
        let points: Zeroizing<Vec<u32>> = Zeroizing::new((0..piece.pieces()).map(point).collect());
        let mut trees = pprf::reconstruct(&points, &known, k);
        let rows = match security {
            Security::SemiHonest => None,
            Security::Malicious => Some(check::check_trees(ch, piece, &points, &mut trees)?),
        };
        let room = Vec::with_capacity(piece.pieces() * (piece.leaves() - 1));
        let mut leaves = Zeroizing::new(room);
        for (tree, &point) in trees.chunks_exact(piece.leaves()).zip(points.iter()) {
            leaves.extend_from_slice(&permuted(tree, point)[1..]);
        }
        Ok(Self {
            piece,
            delta: Zeroizing::new(delta),
            leaves: LeafStreams::punctured(k, &leaves),
            ready: Ready::new(piece, security),
            rows,
        })
    }
}

/// Adds the correction if the secret `bit` of Δ is 1, in time and addresses independent of it.
pub(crate) fn correct(plane: &mut [Block], correction: &[Block], bit: u8) {
    Block::xor_into_if(plane, correction, bit);
}

/// `out[d] = tree[point ⊕ d]`, in time and addresses independent of `point`.
pub(crate) fn permuted(tree: &[Block], point: u32) -> Zeroizing<Vec<Block>> {
    let mut out = Zeroizing::new(tree.to_vec());
    for bit in 0..tree.len().trailing_zeros() {
        let swap = (point >> bit & 1) as u8;
        for block in out.chunks_exact_mut(2 << bit) {
            let (low, high) = block.split_at_mut(1 << bit);
            for (a, b) in low.iter_mut().zip(high) {
                let difference = (*a ^ *b).keep_if(swap);
                *a ^= difference;
                *b ^= difference;
            }
        }
    }
    out
}

impl CotSender for SoftSpokenSender {
    fn delta(&self) -> Block {
        *self.delta
    }
}

impl CotSource for SoftSpokenSender {
    fn extend(&mut self, ch: &mut Channel, out: &mut [Block]) -> Result<(), OtError> {
        let Self {
            piece,
            delta,
            leaves,
            ready,
            rows,
        } = self;
        let k = piece.bits() as usize;
        ready.drain(out, |planes, corrections| {
            ch.span("ot/extend", |ch| {
                leaves.next(PLANE, planes, corrections);
                let corrections = &mut corrections[PLANE..];
                if !corrections.is_empty() {
                    ch.recv(CORRECTION, Block::as_bytes_mut(corrections))?;
                }
                for (j, plane) in planes.chunks_exact_mut(PLANE).enumerate().skip(k) {
                    let correction = &corrections[(j / k - 1) * PLANE..][..PLANE];
                    let bit = (delta.0 >> j & 1) as u8;
                    correct(plane, correction, bit);
                }
                planes[..PLANE].fill(Block::ZERO);
                match rows {
                    Some(rows) => rows.check(ch, **delta, corrections, planes),
                    None => Ok(()),
                }
            })
        })
    }

    fn supply(&self) -> Supply {
        self.ready.supply(self.piece, security(&self.rows))
    }
}

/// COT receiver, base-OT sender.
pub(crate) struct SoftSpokenReceiver {
    piece: Piece,
    /// All leaves of every piece.
    leaves: LeafStreams,
    ready: Ready,
    /// In malicious security.
    rows: Option<Rows>,
}

impl SoftSpokenReceiver {
    /// Makes the trees from roots of `prg` and sends what the peer may know of them, masked by both keys of
    /// every base OT.
    pub(crate) fn new(
        ch: &mut Channel,
        (piece, security): (Piece, Security),
        keys: &[[Block; 2]],
        prg: &mut Prg,
    ) -> Result<Self, OtError> {
        debug_assert_eq!(keys.len(), COUNT);
        let mut roots = Zeroizing::new(vec![Block::ZERO; piece.pieces()]);
        prg.fill_blocks(&mut roots);
        let (mut leaves, sums) = pprf::expand(&roots, piece.bits());
        let masked: Vec<Block> = sums
            .iter()
            .zip(keys)
            .flat_map(|(sum, key)| [sum[0] ^ key[0], sum[1] ^ key[1]])
            .collect();
        ch.send(SEEDS, Block::as_bytes(&masked))?;
        let rows = match security {
            Security::SemiHonest => None,
            Security::Malicious => Some(check::prove_trees(ch, piece, &mut leaves)?),
        };
        Ok(Self {
            piece,
            leaves: LeafStreams::whole(piece.bits(), &leaves),
            ready: Ready::new(piece, security),
            rows,
        })
    }
}

impl CotReceiver for SoftSpokenReceiver {}

impl CotSource for SoftSpokenReceiver {
    fn extend(&mut self, ch: &mut Channel, out: &mut [Block]) -> Result<(), OtError> {
        let Self {
            leaves,
            ready,
            rows,
            ..
        } = self;
        ready.drain(out, |planes, sums| {
            ch.span("ot/extend", |ch| {
                leaves.next(PLANE, planes, sums);
                let (choices, corrections) = sums.split_at_mut(PLANE);
                for u in corrections.chunks_exact_mut(PLANE) {
                    Block::xor_into(u, choices);
                }
                planes[..PLANE].copy_from_slice(choices);
                if !corrections.is_empty() {
                    ch.send(CORRECTION, Block::as_bytes(corrections))?;
                }
                if let Some(rows) = rows {
                    rows.prove(ch, corrections, planes)?;
                }
                Ok(ch.flush()?)
            })
        })
    }

    fn supply(&self) -> Supply {
        self.ready.supply(self.piece, security(&self.rows))
    }
}
