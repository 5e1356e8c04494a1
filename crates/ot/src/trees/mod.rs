//! Eight punctured half-trees from correlated OTs: the message that Ferret and the punctured PRF share.
//!
//! Source: Guo et al., "Half-Tree", EUROCRYPT 2023, Figures 4–6, with random puncture points: the
//! receiver's path bits *are* the complements of its COT choices, so it sends nothing. We also save the
//! message of level 1: its left node may be any fresh secret, so it *is* the first COT's block `q_1`, of
//! which the receiver holds `q_1 ⊕ b_1·Δ`, the level-1 node it is to have.
//!
//! ```text
//! sender (q_i, Δ)                                    receiver (r_i = q_i ⊕ b_i·Δ)
//! tree with level-1 nodes q_1, q_1 ⊕ Δ
//! c_i = (sum of left nodes of level i) ⊕ q_i  ──▶    sum of side b_i = c_i ⊕ r_i   (i = 2 … d)
//! ```
//! Bits: 128·(d − 1) a tree, sender to receiver; 1 message a group of up to eight trees; 1 round. In malicious
//! security: [`checked`].

pub(crate) mod checked;

use volvelle_net::{Channel, Label};
use volvelle_prim::Block;
use volvelle_prim::ggm::{self, Finish, Leaf, PerTree, TREES};

use zeroize::Zeroizing;

use crate::OtError;

const SUMS: Label = Label::new("ot/trees");

/// Correlated OTs of a group, as eight lanes a level; lanes of absent trees are zero. `cots` holds
/// `used` blocks a level.
fn lanes(cots: &[Block], depth: u32, used: usize) -> Zeroizing<Vec<PerTree<Block>>> {
    debug_assert_eq!(cots.len(), depth as usize * used);
    let level = |i| {
        std::array::from_fn(|t| {
            if t < used {
                cots[i * used + t]
            } else {
                Block::ZERO
            }
        })
    };
    Zeroizing::new((0..depth as usize).map(level).collect())
}

/// Sender's half for `used ≤ 8` trees; `nodes` gets the leaves of eight.
pub(crate) fn send(
    ch: &mut Channel,
    delta: Block,
    cots: &[Block],
    (depth, used): (u32, usize),
    nodes: &mut [Block],
) -> Result<(), OtError> {
    let q = lanes(cots, depth, used);
    // A sum and its message give the COT's block.
    let mut sums = Zeroizing::new(vec![[Block::ZERO; TREES]; depth as usize - 1]);
    ggm::expand(&q[0], delta, depth, nodes, &mut sums);
    let message: Vec<Block> = sums
        .iter()
        .zip(&q[1..])
        .flat_map(|(sum, q)| (0..used).map(move |t| sum[t] ^ q[t]))
        .collect();
    if !message.is_empty() {
        ch.send(SUMS, Block::as_bytes(&message))?;
    }
    Ok(())
}

/// Receiver's half; returns the punctured points.
pub(crate) fn receive(
    ch: &mut Channel,
    cots: &[Block],
    (depth, used): (u32, usize),
    leaf: Leaf,
    nodes: &mut [Block],
) -> Result<PerTree<u64>, OtError> {
    let (known, sides) = told(ch, cots, (depth, used))?;
    Ok(ggm::reconstruct(&known, &sides, depth, leaf, nodes))
}

/// Receiver's half for correlated OTs; returns what is still to be done to the leaves.
pub(crate) fn receive_cots(
    ch: &mut Channel,
    cots: &[Block],
    (depth, used): (u32, usize),
    nodes: &mut [Block],
) -> Result<Finish, OtError> {
    let (known, sides) = told(ch, cots, (depth, used))?;
    Ok(ggm::reconstruct_cots(&known, &sides, depth, nodes))
}

/// The sums that a receiver knows, and of which sides.
type Told = (Zeroizing<Vec<PerTree<Block>>>, Zeroizing<Vec<PerTree<u8>>>);

fn told(ch: &mut Channel, cots: &[Block], (depth, used): (u32, usize)) -> Result<Told, OtError> {
    let mut known = lanes(cots, depth, used);
    let sides: Zeroizing<Vec<PerTree<u8>>> =
        Zeroizing::new(known.iter().map(|r| r.map(|b| u8::from(b.lsb()))).collect());
    let mut message = vec![Block::ZERO; (depth as usize - 1) * used];
    if !message.is_empty() {
        ch.recv(SUMS, Block::as_bytes_mut(&mut message))?;
    }
    for (level, sums) in known[1..].iter_mut().zip(message.chunks_exact(used.max(1))) {
        for (r, &c) in level.iter_mut().zip(sums) {
            *r ^= c;
        }
    }
    Ok((known, sides))
}
