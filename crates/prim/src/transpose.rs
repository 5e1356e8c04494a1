//! Bit transpose of 128 rows, what turns an OT extension's columns into its rows.

use crate::Block;

/// Transposes a 128 × 128 bit matrix in place: bit `j` of block `i` becomes bit `i` of block `j`.
///
/// Seven rounds of swapping off-diagonal quadrants (Eklundh); no data-dependent step.
pub fn transpose_128(tile: &mut [Block; 128]) {
    const LOW: [u128; 7] = [
        0x5555_5555_5555_5555_5555_5555_5555_5555,
        0x3333_3333_3333_3333_3333_3333_3333_3333,
        0x0f0f_0f0f_0f0f_0f0f_0f0f_0f0f_0f0f_0f0f,
        0x00ff_00ff_00ff_00ff_00ff_00ff_00ff_00ff,
        0x0000_ffff_0000_ffff_0000_ffff_0000_ffff,
        0x0000_0000_ffff_ffff_0000_0000_ffff_ffff,
        0x0000_0000_0000_0000_ffff_ffff_ffff_ffff,
    ];
    for (round, low) in LOW.into_iter().enumerate() {
        let half = 1usize << round;
        for pair in tile.chunks_exact_mut(2 * half) {
            let (top, bottom) = pair.split_at_mut(half);
            for (a, b) in top.iter_mut().zip(bottom) {
                let swap = (a.0 >> half ^ b.0) & low;
                a.0 ^= swap << half;
                b.0 ^= swap;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Prg;

    #[test]
    fn bits_swap_places() {
        let mut tile = [Block::ZERO; 128];
        Prg::from_seed(Block(9)).fill_blocks(&mut tile);
        let before = tile;
        transpose_128(&mut tile);
        for i in 0..128 {
            for j in 0..128 {
                assert_eq!(tile[i].0 >> j & 1, before[j].0 >> i & 1, "{i} {j}");
            }
        }
    }
}
