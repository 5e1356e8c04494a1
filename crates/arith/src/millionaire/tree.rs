//! The tree of ANDs that joins the blocks of a comparison.
//!
//! Neighbours are joined from the low end, an odd one at the high end waits: lt = lt_hi ⊕ eq_hi·lt_lo and eq
//! = eq_hi·eq_lo, two ANDs with one left operand ([`AndShared`], 6 bits); where the low part is the lowest of
//! all, only the first (4 bits). Segments (blocks between two cuts) are joined side by side, then one after
//! the other from the low end.
//!
//! Rounds: ⌈log₂ of the largest number of blocks⌉ + segments − 1. Preprocessing: no bits.

use volvelle_net::{Channel, Label};
use volvelle_ot::{Cost, Ot, PhasedCost};
use volvelle_prim::BitVec;

use super::Leaf;
use crate::and::AndShared;
use crate::error::ArithError;
use crate::wire;

const LEVEL: Label = Label::new("arith/compare/level");

/// What is joined in one round.
#[derive(Clone, Copy)]
struct Joins {
    /// Pairs of which both lt and eq are needed.
    full: usize,
    /// Pairs of which only lt is needed, 0 or 1; it comes first.
    last: usize,
}

/// The rounds that join each segment to one node.
fn joining(segments: &[usize]) -> Vec<Joins> {
    let mut sizes = segments.to_vec();
    let mut rounds = Vec::new();
    while sizes.iter().any(|&n| n > 1) {
        let pairs: usize = sizes.iter().map(|n| n / 2).sum();
        let last = usize::from(sizes[0] > 1);
        rounds.push(Joins {
            full: pairs - last,
            last,
        });
        for n in &mut sizes {
            *n = n.div_ceil(2);
        }
    }
    rounds
}

/// The rounds that join the segments.
fn chain(segments: &[usize]) -> impl Iterator<Item = Joins> {
    segments.iter().skip(1).map(|_| Joins { full: 0, last: 1 })
}

/// The ANDs of one round.
struct Level {
    full: AndShared,
    last: AndShared,
}

impl Level {
    fn prepare(
        ch: &mut Channel,
        ot: &mut Ot,
        joins: Joins,
        batch: usize,
    ) -> Result<Level, ArithError> {
        Ok(Level {
            full: AndShared::prepare(ch, ot, 2, joins.full * batch)?,
            last: AndShared::prepare(ch, ot, 1, joins.last * batch)?,
        })
    }

    fn cost(joins: Joins, batch: usize) -> PhasedCost {
        let (full, last) = (joins.full * batch, joins.last * batch);
        let bits =
            wire::wire_bools(AndShared::opened_len(2, full) + AndShared::opened_len(1, last));
        PhasedCost {
            prep: AndShared::prep_cost(full).then(AndShared::prep_cost(last)),
            online: Cost {
                client_bits: bits,
                server_bits: bits,
                rounds: 1,
                ..Cost::default()
            },
        }
    }

    /// Joins pairs of (low, high); a pair whose low node has no eq is the first.
    fn join(
        self,
        ch: &mut Channel,
        batch: usize,
        pairs: &[(Leaf, Leaf)],
    ) -> Result<Vec<Leaf>, ArithError> {
        let last = pairs.iter().take_while(|(low, _)| low.eq.is_none()).count();
        let (lasts, fulls) = pairs.split_at(last);
        let mut opened = self.last.masked(
            &concat(lasts, |(_, high)| high.eq.as_ref()),
            &[&concat(lasts, |(low, _)| Some(&low.lt))],
        )?;
        let of_last = opened.len();
        opened.extend_bits(&self.full.masked(
            &concat(fulls, |(_, high)| high.eq.as_ref()),
            &[
                &concat(fulls, |(low, _)| Some(&low.lt)),
                &concat(fulls, |(low, _)| low.eq.as_ref()),
            ],
        )?);
        opened.xor_assign(&wire::exchange_bits(ch, LEVEL, &opened)?);

        let last_products = self.last.finish(&opened.slice(0, of_last));
        let full_products = self
            .full
            .finish(&opened.slice(of_last, opened.len() - of_last));
        let mut joined = Vec::with_capacity(pairs.len());
        for (k, (_, high)) in lasts.iter().enumerate() {
            joined.push(Leaf {
                lt: xor_part(&high.lt, &last_products[0], k, batch),
                eq: None,
            });
        }
        for (k, (_, high)) in fulls.iter().enumerate() {
            let eq = full_products[1].slice(k * batch, batch);
            joined.push(Leaf {
                lt: xor_part(&high.lt, &full_products[0], k, batch),
                eq: Some(eq),
            });
        }
        Ok(joined)
    }
}

/// One bit vector of each pair, one after the other.
fn concat<'a>(
    pairs: &'a [(Leaf, Leaf)],
    pick: impl Fn(&'a (Leaf, Leaf)) -> Option<&'a BitVec>,
) -> BitVec {
    let mut all = BitVec::zeros(0);
    for bits in pairs.iter().filter_map(pick) {
        all.extend_bits(bits);
    }
    all
}

/// `bits` ⊕ the k-th batch of `all`.
fn xor_part(bits: &BitVec, all: &BitVec, k: usize, batch: usize) -> BitVec {
    let mut out = all.slice(k * batch, batch);
    out.xor_assign(bits);
    out
}

pub(super) struct Tree {
    batch: usize,
    /// Joins within the segments.
    levels: Vec<Level>,
    /// Joins of the segments.
    chain: Vec<Level>,
}

impl Tree {
    pub fn prepare(
        ch: &mut Channel,
        ot: &mut Ot,
        segments: &[usize],
        batch: usize,
    ) -> Result<Tree, ArithError> {
        let levels = joining(segments)
            .into_iter()
            .map(|joins| Level::prepare(ch, ot, joins, batch));
        let levels = levels.collect::<Result<_, _>>()?;
        let chain = chain(segments).map(|joins| Level::prepare(ch, ot, joins, batch));
        Ok(Tree {
            batch,
            levels,
            chain: chain.collect::<Result<_, _>>()?,
        })
    }

    pub fn rounds(segments: &[usize]) -> u64 {
        (joining(segments).len() + chain(segments).count()) as u64
    }

    pub fn cost(segments: &[usize], batch: usize) -> PhasedCost {
        let levels = joining(segments)
            .into_iter()
            .chain(chain(segments))
            .map(|joins| Level::cost(joins, batch));
        levels.fold(PhasedCost::default(), PhasedCost::then)
    }

    /// Shares of lt of the low blocks up to the end of each segment.
    pub fn run(
        self,
        ch: &mut Channel,
        segments: &[usize],
        leaves: Vec<Leaf>,
    ) -> Result<Vec<BitVec>, ArithError> {
        let mut leaves = leaves.into_iter();
        let mut nodes: Vec<Vec<Leaf>> = segments
            .iter()
            .map(|&n| leaves.by_ref().take(n).collect())
            .collect();
        for level in self.levels {
            let sizes: Vec<usize> = nodes.iter().map(Vec::len).collect();
            let (pairs, mut odd) = pair_up(nodes);
            let mut joined = level.join(ch, self.batch, &pairs)?.into_iter();
            nodes = sizes
                .iter()
                .zip(&mut odd)
                .map(|(n, odd)| joined.by_ref().take(n / 2).chain(odd.take()).collect())
                .collect();
        }
        let mut roots = nodes.into_iter().flatten();
        let mut prefixes: Vec<Leaf> = roots.next().into_iter().collect();
        for (level, high) in self.chain.into_iter().zip(roots) {
            let pairs: Vec<_> = prefixes.pop().map(|low| (low, high)).into_iter().collect();
            let joined = level.join(ch, self.batch, &pairs)?;
            prefixes.extend(pairs.into_iter().map(|(low, _)| low));
            prefixes.extend(joined);
        }
        Ok(prefixes.into_iter().map(|leaf| leaf.lt).collect())
    }
}

/// Neighbours of every segment, (low, high), and each segment's node without one.
fn pair_up(segments: Vec<Vec<Leaf>>) -> (Vec<(Leaf, Leaf)>, Vec<Option<Leaf>>) {
    let mut pairs = Vec::new();
    let mut odd = Vec::new();
    for segment in segments {
        let mut rest = segment.into_iter();
        odd.push(loop {
            match (rest.next(), rest.next()) {
                (Some(low), Some(high)) => pairs.push((low, high)),
                (single, _) => break single,
            }
        });
    }
    (pairs, odd)
}
