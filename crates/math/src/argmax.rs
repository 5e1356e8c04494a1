//! The index of the largest of several shared numbers.
//!
//! A tree: of two neighbours (left, right), b = 1{left ≥ right} picks value and index together by one
//! multiplexer with two words, right + b·(left − right). Ties go to the left, so to the lowest index. Only
//! shares of the index come out; the caller opens them ([`volvelle_arith::open_arith`]) or goes on. The last
//! round picks the index only.
//!
//! For c numbers: c − 1 comparisons of l bits, c − 1 multiplexers of l + ⌈log₂ c⌉ bits, in ⌈log₂ c⌉ levels
//! one after the other.
//!
//! Domain: the differences of the numbers must be in −2^{l−1} … 2^{l−1} − 1.
//!
//! Security: that of comparison and multiplexer; nothing is opened.

use volvelle_arith::{Flow, GreaterEqual, Mux, Ring, Variant};
use volvelle_net::{Channel, Role};
use volvelle_ot::{Ot, PhasedCost};

use crate::error::{MathError, check_len, check_range};

/// What is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArgmaxShape {
    /// The ring of the numbers.
    pub ring: Ring,
    /// c, the numbers to choose from: 1 to 2^16.
    pub classes: usize,
    /// How the comparisons are made.
    pub variant: Variant,
}

impl ArgmaxShape {
    /// The ring of the index.
    pub fn index_ring(&self) -> Result<Ring, MathError> {
        check_range(
            "classes of an argmax",
            1,
            1 << 16,
            self.classes.try_into().unwrap_or(u32::MAX),
        )?;
        Ok(Ring::new(self.classes.next_power_of_two().ilog2().max(1))?)
    }

    /// Of each level: the number of pairs, and the rings of what is picked.
    fn levels(&self) -> Result<Vec<(usize, Vec<Ring>)>, MathError> {
        let index = self.index_ring()?;
        let mut left = self.classes;
        let mut levels = Vec::new();
        while left > 1 {
            let rings = if left == 2 {
                vec![index]
            } else {
                vec![index, self.ring]
            };
            levels.push((left / 2, rings));
            left = left.div_ceil(2);
        }
        Ok(levels)
    }
}

struct Level {
    pairs: usize,
    rings: Vec<Ring>,
    compare: GreaterEqual,
    pick: Mux,
}

/// A batch of prepared argmaxes.
pub struct Argmax {
    shape: ArgmaxShape,
    batch: usize,
    levels: Vec<Level>,
}

impl Argmax {
    /// Prepares `batch` argmaxes.
    pub fn prepare(
        ch: &mut Channel,
        ot: &mut Ot,
        shape: &ArgmaxShape,
        batch: usize,
    ) -> Result<Argmax, MathError> {
        let mut levels = Vec::new();
        for (pairs, rings) in shape.levels()? {
            let compare = GreaterEqual::prepare(ch, ot, shape.variant, shape.ring, pairs * batch)?;
            let pick = Mux::prepare_many(ch, ot, &rings, pairs * batch)?;
            levels.push(Level {
                pairs,
                rings,
                compare,
                pick,
            });
        }
        Ok(Argmax {
            shape: *shape,
            batch,
            levels,
        })
    }

    /// What `prepare` and `run` send and consume.
    pub fn cost(shape: &ArgmaxShape, batch: usize) -> Result<PhasedCost, MathError> {
        let mut cost = PhasedCost::default();
        let mut flow = Flow::default();
        for (pairs, rings) in shape.levels()? {
            cost = cost
                .then(GreaterEqual::cost(
                    shape.variant,
                    shape.ring,
                    pairs * batch,
                )?)
                .then(Mux::cost_many(&rings, pairs * batch));
            GreaterEqual::flow(shape.variant, shape.ring, &mut flow)?;
            Mux::flow(&mut flow);
        }
        cost.online.rounds = flow.rounds();
        Ok(cost)
    }

    /// Shares of the indices in [`ArgmaxShape::index_ring`]; number k of item v at `v·classes + k`.
    pub fn run(self, ch: &mut Channel, values: &[u64]) -> Result<Vec<u64>, MathError> {
        ch.span("argmax", |ch| self.run_in_span(ch, values))
    }

    fn run_in_span(self, ch: &mut Channel, values: &[u64]) -> Result<Vec<u64>, MathError> {
        let ArgmaxShape { ring, classes, .. } = self.shape;
        check_len("numbers of an argmax", classes * self.batch, values.len())?;
        // One row for each class: the shares of all items.
        let mut nodes: Vec<Node> = (0..classes)
            .map(|k| Node {
                index: vec![
                    if ch.role() == Role::Client {
                        k as u64
                    } else {
                        0
                    };
                    self.batch
                ],
                value: values.iter().skip(k).step_by(classes).copied().collect(),
            })
            .collect();
        for level in self.levels {
            let odd = nodes.split_off(2 * level.pairs);
            let (left, right): (Vec<&Node>, Vec<&Node>) =
                nodes.chunks_exact(2).map(|n| (&n[0], &n[1])).unzip();
            let (left_values, right_values) =
                (concat(&left, |n| &n.value), concat(&right, |n| &n.value));
            let wins = level.compare.run(ch, &left_values, &right_values)?;

            let (left_index, right_index) =
                (concat(&left, |n| &n.index), concat(&right, |n| &n.index));
            let index_step = difference(level.rings[0], &left_index, &right_index);
            let value_step = difference(ring, &left_values, &right_values);
            let steps = [index_step.as_slice(), value_step.as_slice()];
            let picked = level
                .pick
                .run_many(ch, &wins, &steps[..level.rings.len()])?;

            let mut indices = sum(level.rings[0], &right_index, &picked[0]);
            let mut values = match picked.get(1) {
                Some(picked) => sum(ring, &right_values, picked),
                None => right_values,
            };
            nodes = (0..level.pairs)
                .map(|_| Node {
                    index: indices.drain(..self.batch).collect(),
                    value: values.drain(..self.batch).collect(),
                })
                .chain(odd)
                .collect();
        }
        Ok(nodes.swap_remove(0).index)
    }
}

/// A candidate: shares for every item of the batch.
struct Node {
    index: Vec<u64>,
    value: Vec<u64>,
}

fn concat<'a>(nodes: &[&'a Node], part: impl Fn(&'a Node) -> &'a [u64]) -> Vec<u64> {
    nodes.iter().flat_map(|node| part(node)).copied().collect()
}

fn difference(ring: Ring, x: &[u64], y: &[u64]) -> Vec<u64> {
    x.iter().zip(y).map(|(&x, &y)| ring.sub(x, y)).collect()
}

fn sum(ring: Ring, x: &[u64], y: &[u64]) -> Vec<u64> {
    x.iter().zip(y).map(|(&x, &y)| ring.add(x, y)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use volvelle_arith::share;
    use volvelle_arith::testing::{add, both, prg};

    fn check(shape: &ArgmaxShape, values: &[i64]) {
        let batch = values.len() / shape.classes;
        let encoded: Vec<u64> = values.iter().map(|&v| shape.ring.from_signed(v)).collect();
        let shares = share(&mut prg(batch), shape.ring, &encoded);
        let (c, s) = both(
            Argmax::cost(shape, batch).unwrap(),
            |ch, ot| Argmax::prepare(ch, ot, shape, batch),
            |ch, p, side| p.run(ch, side.words(&shares)),
        );
        let expected: Vec<u64> = values
            .chunks(shape.classes)
            .map(|item| {
                let best = item.iter().max().unwrap();
                item.iter().position(|v| v == best).unwrap() as u64
            })
            .collect();
        assert_eq!(
            add(shape.index_ring().unwrap(), &c, &s),
            expected,
            "{shape:?}"
        );
    }

    #[test]
    fn every_small_input_ties_included() {
        for classes in 1..=4 {
            for variant in Variant::ALL {
                let shape = ArgmaxShape {
                    ring: Ring::new(4).unwrap(),
                    classes,
                    variant,
                };
                let values: Vec<i64> = (0..5i64.pow(classes as u32))
                    .flat_map(|i| (0..classes as u32).map(move |k| i / 5i64.pow(k) % 5 - 2))
                    .collect();
                check(&shape, &values);
            }
        }
    }

    #[test]
    fn classes_and_batches() {
        for classes in [1, 2, 3, 5, 10, 17] {
            for batch in [1, 7, 64, 1000] {
                let ring = Ring::new(37).unwrap();
                let shape = ArgmaxShape {
                    ring,
                    classes,
                    variant: Variant::Cheetah,
                };
                let mut values = vec![0; classes * batch];
                prg(classes).fill_masked(&mut values, 36);
                let values: Vec<i64> = values.into_iter().map(|v| v as i64 - (1 << 35)).collect();
                check(&shape, &values);
            }
        }
    }

    #[test]
    fn bad_shapes_are_errors() {
        let shape = ArgmaxShape {
            ring: Ring::Z64,
            classes: 0,
            variant: Variant::Cheetah,
        };
        assert!(Argmax::cost(&shape, 1).is_err());
    }
}
