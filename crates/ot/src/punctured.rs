//! The punctured PRF of [`Ot`]: many trees, each known to its receiver but for a leaf.
//!
//! Semi-honest, the trees of `crate::trees` eight at a time, their leaves hashed. In malicious security all trees of a call are
//! exchanged and checked first (`crate::trees::checked`).
//!
//! Bits: 128·(depth − 1) a tree, one message a group of eight, one round; malicious 128·depth a tree and 640 a call, two
//! rounds more, 128 OTs a call more.

use volvelle_net::Channel;
use volvelle_prim::Block;
use volvelle_prim::ggm::{Leaf, PerTree, TREES};
use volvelle_prim::hash::ccr;
use zeroize::Zeroizing;

use crate::session::{check_count, check_width};
use crate::trees::checked::{CHECK_COTS, Planted, Punctured};
use crate::{Ot, OtError, trees};

/// Depth, blocks a leaf, trees.
#[derive(Clone, Copy)]
struct Shape {
    depth: u32,
    width: usize,
    count: usize,
}

impl Shape {
    fn check(self) -> Result<(), OtError> {
        let Self {
            depth,
            width,
            count,
        } = self;
        if !(1..=24).contains(&depth) {
            let what = "tree depth (1 to 24)";
            return Err(OtError::Shape {
                what,
                expected: 24,
                got: depth as usize,
            });
        }
        check_width(width, width)?;
        check_count(
            "blocks of a punctured tree's rows",
            (width as u64).saturating_mul(1 << depth),
        )?;
        check_count(
            "OTs of punctured trees",
            (count as u64).saturating_mul(depth.into()),
        )
    }

    /// COTs of a checked call.
    fn checked_cots(self) -> Zeroizing<Vec<Block>> {
        Zeroizing::new(vec![
            Block::ZERO;
            self.count * self.depth as usize + CHECK_COTS
        ])
    }
}

impl Ot {
    /// Punctured PRF as sender: `count` trees of `2^depth` leaves, each hashed to `width` blocks.
    ///
    /// `visit(i, rows)` sees the `2^depth · width` blocks of tree `i`, in order; they may be overwritten.
    /// Sends `128·(depth − 1)` bits a tree in one round, consumes `depth` OTs a tree; in malicious security
    /// `128·depth` bits a tree, and 640 bits, two rounds and 128 OTs a call more. Rows are `H(leaf ⊕ j)`,
    /// `j < width`, with the correlation-robust hash of the trees.
    ///
    /// # Errors
    /// [`OtError::Shape`] for a depth outside `1..=24` or a zero width; [`OtError::TooMany`] for more than 2^32
    /// OTs, or blocks a tree; the others as [`Self::send_random`].
    pub fn send_pprf(
        &mut self,
        ch: &mut Channel,
        depth: u32,
        width: usize,
        count: usize,
        visit: &mut dyn FnMut(usize, &mut [Block]),
    ) -> Result<(), OtError> {
        let shape = Shape {
            depth,
            width,
            count,
        };
        shape.check()?;
        let mut visit = |i, _, rows: &mut [Block]| visit(i, rows);
        self.guarded(|ot| ot.send_trees(ch, shape, &mut visit))
    }

    /// Punctured PRF as receiver, at uniform points made here: `visit(i, point, rows)` sees the sender's
    /// rows of tree `i` but for row `point`, which holds a public constant.
    ///
    /// # Errors
    /// As [`Self::send_pprf`].
    pub fn recv_pprf(
        &mut self,
        ch: &mut Channel,
        depth: u32,
        width: usize,
        count: usize,
        visit: &mut dyn FnMut(usize, usize, &mut [Block]),
    ) -> Result<(), OtError> {
        let shape = Shape {
            depth,
            width,
            count,
        };
        shape.check()?;
        let mut visit = |i, point, rows: &mut [Block]| visit(i, point as usize, rows);
        self.guarded(|ot| ot.recv_trees(ch, shape, &mut visit))
    }

    fn send_trees(
        &mut self,
        ch: &mut Channel,
        shape: Shape,
        visit: Visit<'_>,
    ) -> Result<(), OtError> {
        let (delta, depth) = (self.sender.delta(), shape.depth);
        if shape.count == 0 {
            return Ok(());
        }
        let Some(mut prg) = self.checks.take() else {
            return self.for_groups(shape, visit, |ot, _, used, nodes| {
                let mut cots = Zeroizing::new(vec![Block::ZERO; used * depth as usize]);
                ot.sender.extend(ch, &mut cots)?;
                ot.sent += cots.len() as u64;
                trees::send(ch, delta, &cots, (depth, used), nodes)?;
                Ok([0; TREES])
            });
        };
        let mut cots = shape.checked_cots();
        self.sender.extend(ch, &mut cots)?;
        self.sent += cots.len() as u64;
        let planted = Planted::send(ch, delta, &cots, depth, &mut prg)?;
        self.checks = Some(prg);
        self.for_groups(shape, visit, |_, first, _, nodes| {
            planted.grow(first / TREES, nodes);
            Ok([0; TREES])
        })
    }

    fn recv_trees(
        &mut self,
        ch: &mut Channel,
        shape: Shape,
        visit: Visit<'_>,
    ) -> Result<(), OtError> {
        let depth = shape.depth;
        if shape.count == 0 {
            return Ok(());
        }
        let Some(mut prg) = self.checks.take() else {
            return self.for_groups(shape, visit, |ot, _, used, nodes| {
                let mut cots = Zeroizing::new(vec![Block::ZERO; used * depth as usize]);
                ot.receiver.extend(ch, &mut cots)?;
                ot.received += cots.len() as u64;
                trees::receive(ch, &cots, (depth, used), Leaf::Zero, nodes)
            });
        };
        let mut cots = shape.checked_cots();
        self.receiver.extend(ch, &mut cots)?;
        self.received += cots.len() as u64;
        let punctured = Punctured::receive(ch, &cots, depth, &mut prg)?;
        self.checks = Some(prg);
        self.for_groups(shape, visit, |_, first, _, nodes| {
            Ok(punctured.grow(first / TREES, Leaf::Zero, nodes))
        })
    }

    /// Eight trees at a time: `grow(self, first, used, nodes)` fills the leaves and returns the points, `visit`
    /// sees the hashed rows of each tree.
    fn for_groups(
        &mut self,
        Shape {
            depth,
            width,
            count,
        }: Shape,
        visit: Visit<'_>,
        mut grow: impl FnMut(&mut Self, usize, usize, &mut [Block]) -> Result<PerTree<u64>, OtError>,
    ) -> Result<(), OtError> {
        let mut scratch = std::mem::take(&mut self.scratch);
        let blocks = (TREES + width) << depth;
        if scratch.capacity() < blocks {
            // Growing in place would leave a copy of old leaves behind.
            scratch = Zeroizing::new(Vec::with_capacity(blocks));
        }
        scratch.resize(blocks, Block::ZERO);
        let (nodes, rows) = scratch.split_at_mut(TREES << depth);
        for first in (0..count).step_by(TREES) {
            let used = TREES.min(count - first);
            let points = grow(self, first, used, nodes)?;
            for (t, &point) in points[..used].iter().enumerate() {
                match width {
                    1 => spread::<1>(nodes, t, rows),
                    2 => spread::<2>(nodes, t, rows),
                    4 => spread::<4>(nodes, t, rows),
                    _ => spread_any(nodes, t, rows, width),
                }
                ccr(rows);
                visit(first + t, point, rows);
            }
        }
        self.scratch = scratch;
        Ok(())
    }
}

/// Sees tree, point, rows.
type Visit<'a> = &'a mut dyn FnMut(usize, u64, &mut [Block]);

/// `rows[j·W + b] = (leaf j of tree t) ⊕ b`: distinct hash inputs for every block of a row.
fn spread<const W: usize>(nodes: &[Block], t: usize, rows: &mut [Block]) {
    for (leaves, row) in nodes
        .as_chunks::<TREES>()
        .0
        .iter()
        .zip(rows.as_chunks_mut::<W>().0)
    {
        let leaf = leaves[t % TREES];
        for (b, block) in row.iter_mut().enumerate() {
            *block = leaf ^ Block(b as u128);
        }
    }
}

/// [`spread`] for any width.
fn spread_any(nodes: &[Block], t: usize, rows: &mut [Block], width: usize) {
    for (leaves, row) in nodes.chunks_exact(TREES).zip(rows.chunks_exact_mut(width)) {
        for (b, block) in row.iter_mut().enumerate() {
            *block = leaves[t] ^ Block(b as u128);
        }
    }
}
