//! Words of `l` bits as one contiguous little-endian bit stream: the wire format of shares.

use crate::mask;

/// Bytes that `count` words of `bits` bits take: `⌈count·bits / 8⌉`.
#[inline]
#[must_use]
pub const fn packed_len(count: usize, bits: u32) -> usize {
    (count * bits as usize).div_ceil(8)
}

/// Appends the low `bits` bits (`1..=64`) of every value to `out`; unused bits of the last byte
/// are zero. The stream starts at a fresh byte.
///
/// # Panics
/// If `bits` is not in `1..=64`.
pub fn pack_append(values: &[u64], bits: u32, out: &mut Vec<u8>) {
    assert!(
        (1..=64).contains(&bits),
        "bits must be in 1..=64, got {bits}"
    );
    out.reserve(packed_len(values.len(), bits));
    match bits {
        8 => out.extend(values.iter().map(|&v| v as u8)),
        16 => values
            .iter()
            .for_each(|&v| out.extend_from_slice(&(v as u16).to_le_bytes())),
        32 => values
            .iter()
            .for_each(|&v| out.extend_from_slice(&(v as u32).to_le_bytes())),
        64 => values
            .iter()
            .for_each(|&v| out.extend_from_slice(&v.to_le_bytes())),
        _ => pack_stream(values, bits, out),
    }
}

fn pack_stream(values: &[u64], bits: u32, out: &mut Vec<u8>) {
    let mut pending = 0u128;
    let mut held = 0u32;
    for &value in values {
        pending |= u128::from(value & mask(bits)) << held;
        held += bits;
        if held >= 64 {
            out.extend_from_slice(&(pending as u64).to_le_bytes());
            pending >>= 64;
            held -= 64;
        }
    }
    let rest = (pending as u64).to_le_bytes();
    out.extend_from_slice(&rest[..held.div_ceil(8) as usize]);
}

/// Packs one slice into a new vector; see [`pack_append`].
#[must_use]
pub fn pack(values: &[u64], bits: u32) -> Vec<u8> {
    let mut out = Vec::new();
    pack_append(values, bits, &mut out);
    out
}

/// Reads `out.len()` words of `bits` bits. Inverse of [`pack_append`]; padding bits are ignored.
///
/// # Panics
/// If `bytes.len() != packed_len(out.len(), bits)` or `bits` is not in `1..=64`: callers receive
/// exactly that many bytes.
pub fn unpack_into(bytes: &[u8], bits: u32, out: &mut [u64]) {
    assert!(
        (1..=64).contains(&bits),
        "bits must be in 1..=64, got {bits}"
    );
    assert_eq!(
        bytes.len(),
        packed_len(out.len(), bits),
        "packed length of {} words",
        out.len()
    );
    match bits {
        8 => out
            .iter_mut()
            .zip(bytes)
            .for_each(|(o, &b)| *o = u64::from(b)),
        16 => unpack_whole::<2>(bytes, out),
        32 => unpack_whole::<4>(bytes, out),
        64 => unpack_whole::<8>(bytes, out),
        _ => unpack_stream(bytes, bits, out),
    }
}

fn unpack_whole<const N: usize>(bytes: &[u8], out: &mut [u64]) {
    for (value, chunk) in out.iter_mut().zip(bytes.chunks_exact(N)) {
        let mut word = [0; 8];
        word[..N].copy_from_slice(chunk);
        *value = u64::from_le_bytes(word);
    }
}

fn unpack_stream(bytes: &[u8], bits: u32, out: &mut [u64]) {
    let mut words = bytes.chunks(8).map(|chunk| {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        u64::from_le_bytes(word)
    });
    let mut pending = 0u128;
    let mut held = 0u32;
    for value in out {
        if held < bits {
            pending |= u128::from(words.next().unwrap_or(0)) << held;
            held += 64;
        }
        *value = pending as u64 & mask(bits);
        pending >>= bits;
        held -= bits;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn unpacking_inverts_packing(bits in 1u32..=64, values in prop::collection::vec(any::<u64>(), 0..70)) {
            let values: Vec<u64> = values.into_iter().map(|v| v & mask(bits)).collect();
            let bytes = pack(&values, bits);
            prop_assert_eq!(bytes.len(), packed_len(values.len(), bits));
            let mut back = vec![0; values.len()];
            unpack_into(&bytes, bits, &mut back);
            prop_assert_eq!(back, values);
        }
    }

    #[test]
    fn the_stream_is_little_endian_and_contiguous() {
        assert_eq!(pack(&[0b101, 0b011, 0b111], 3), [0b1101_1101, 0b1]);
        assert_eq!(pack(&[1, 2], 12), [1, 0x20, 0]);
    }
}
