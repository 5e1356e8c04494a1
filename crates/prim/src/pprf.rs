//! Punctured PRF from plain GGM trees (Goldreich, Goldwasser, Micali, 1986; Boneh, Waters, 2013), many trees
//! at once.
//!
//! The children of node `j` of a level are `H(node, j)` to two blocks, `H` = [`Tccr`]; nothing correlates
//! them, so all leaves but the punctured one may be used as they are. With the path bits `a_1 … a_d` of a point
//! (most significant first), the sums of each level's nodes on side `1 ⊕ a_i` give all leaves but that one.
//! Nodes of a tree are contiguous and in order.

use zeroize::Zeroizing;

use crate::Block;
use crate::hash::Tccr;

/// Sums of a level's left and right nodes.
pub type Sides = [Block; 2];

/// One level deeper: the children of all nodes.
fn children(nodes: &[Block]) -> Zeroizing<Vec<Block>> {
    let mut next = Zeroizing::new(vec![Block::ZERO; 2 * nodes.len()]);
    Tccr { first: 0, width: 2 }.hash(nodes, Block::ZERO, &mut next);
    next
}

fn sums(tree: &[Block]) -> Sides {
    tree.chunks_exact(2)
        .fold([Block::ZERO; 2], |[l, r], pair| [l ^ pair[0], r ^ pair[1]])
}

/// Expands a tree from each root. Returns the leaves, `2^depth` a tree, and the sums of level `i` of tree
/// `t` at `depth·t + i`.
#[must_use]
pub fn expand(roots: &[Block], depth: u32) -> (Zeroizing<Vec<Block>>, Zeroizing<Vec<Sides>>) {
    let mut all = Zeroizing::new(vec![[Block::ZERO; 2]; roots.len() * depth as usize]);
    let mut nodes = Zeroizing::new(roots.to_vec());
    for level in 0..depth {
        nodes = children(&nodes);
        for (t, tree) in nodes.chunks_exact(2 << level).enumerate() {
            all[t * depth as usize + level as usize] = sums(tree);
        }
    }
    (nodes, all)
}

/// Rebuilds trees punctured at `points` (below `2^depth`, most significant path bit first), given the sum on
/// the side off the path of each level, in the order of [`expand`]. The leaf at a point is zero. Time
/// and addresses do not depend on the points.
///
/// # Panics
/// If there are not `depth` sums a point.
#[must_use]
pub fn reconstruct(points: &[u32], known: &[Block], depth: u32) -> Zeroizing<Vec<Block>> {
    assert_eq!(
        known.len(),
        points.len() * depth as usize,
        "a sum a level and tree"
    );
    let mut nodes = Zeroizing::new(vec![Block::ZERO; points.len()]);
    for level in 0..depth {
        nodes = children(&nodes);
        for (t, tree) in nodes.chunks_exact_mut(2 << level).enumerate() {
            let on_path = points[t] >> (depth - 1 - level);
            let sibling = on_path ^ 1;
            clear_at(tree, on_path);
            clear_at(tree, sibling);
            let seen = sums(tree);
            let side = (sibling & 1) as u8;
            let missing = known[t * depth as usize + level as usize]
                ^ seen[0].keep_if(1 ^ side)
                ^ seen[1].keep_if(side);
            for (j, node) in tree.iter_mut().enumerate() {
                *node ^= missing.keep_if(equal(j as u32, sibling));
            }
        }
    }
    nodes
}

fn clear_at(tree: &mut [Block], at: u32) {
    for (j, node) in tree.iter_mut().enumerate() {
        *node = node.keep_if(1 ^ equal(j as u32, at));
    }
}

/// 1 if `a == b`, else 0, without a branch.
fn equal(a: u32, b: u32) -> u8 {
    let d = u64::from(a ^ b);
    (d.wrapping_sub(1) >> 63) as u8
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Prg;

    #[test]
    fn all_leaves_but_the_point_are_rebuilt() {
        let mut prg = Prg::from_seed(Block(8));
        for depth in 1..=6u32 {
            let trees = 1 << depth;
            let mut roots = vec![Block::ZERO; trees];
            prg.fill_blocks(&mut roots);
            let (leaves, sums) = expand(&roots, depth);
            // Tree t is punctured at t: every point of a tree of this depth.
            let points: Vec<u32> = (0..trees as u32).collect();
            let known: Vec<Block> = sums
                .iter()
                .enumerate()
                .map(|(i, sides)| {
                    let (t, level) = (i as u32 / depth, i as u32 % depth);
                    sides[(1 ^ (t >> (depth - 1 - level))) as usize & 1]
                })
                .collect();
            let rebuilt = reconstruct(&points, &known, depth);
            for (i, (a, b)) in leaves.iter().zip(rebuilt.iter()).enumerate() {
                let (t, j) = (i / trees, i % trees);
                assert!(
                    if j == t { *b == Block::ZERO } else { a == b },
                    "depth {depth} tree {t} leaf {j}"
                );
            }
        }
    }
}
