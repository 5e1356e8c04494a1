//! The model's weights: read from a safetensors file and checked before anything is computed with them.
//!
//! The file holds `W1 [64,64]`, `b1 [64]`, `W2 [10,64]` and `b2 [10]` as F32, row-major, one row an output.

use std::path::{Path, PathBuf};

use safetensors::{Dtype, SafeTensors};

use super::{CLASSES, HIDDEN, PIXELS};

/// Largest file that is read; the model itself is some 20 kB.
const MAX_FILE: u64 = 16 << 20;
/// Weights and biases are below this in magnitude, so that the widths of the fixed-point model suffice.
pub const MAX_WEIGHT: f32 = 8.0;

/// What can be wrong with a model file.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WeightsError {
    /// The file cannot be read.
    #[error(
        "cannot read the model {path}: {source}; name a safetensors file, such as data/digits-mlp.safetensors"
    )]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The file is larger than any model of this shape.
    #[error("{path} has {got} bytes, expected at most {MAX_FILE}; is it another model?")]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// Its length.
        got: u64,
    },
    /// The file is no safetensors file, or is cut short.
    #[error(
        "{path} is no whole safetensors file ({reason}); write it anew with tools/train_digits.py"
    )]
    Format {
        /// The file.
        path: PathBuf,
        /// What the reader said.
        reason: String,
    },
    /// A tensor is missing.
    #[error(
        "{path} has no tensor \"{name}\"; expected W1, b1, W2 and b2, as tools/train_digits.py writes them"
    )]
    Missing {
        /// The file.
        path: PathBuf,
        /// The tensor.
        name: &'static str,
    },
    /// A tensor has another shape or type than the model.
    #[error(
        "{path}: tensor \"{name}\" is {got}, expected F32 {expected:?}; only 64-64-10 models can be served"
    )]
    Shape {
        /// The file.
        path: PathBuf,
        /// The tensor.
        name: &'static str,
        /// Its shape in the model.
        expected: Vec<usize>,
        /// What the file has.
        got: String,
    },
    /// A value is not a number or too large.
    #[error(
        "{path}: tensor \"{name}\" has the value {got} at {index}, expected a number between -{MAX_WEIGHT} and {MAX_WEIGHT}; rescale the model"
    )]
    Value {
        /// The file.
        path: PathBuf,
        /// The tensor.
        name: &'static str,
        /// Position in the tensor.
        index: usize,
        /// The value.
        got: f32,
    },
}

/// Checked weights. Rows are outputs.
#[derive(Clone, PartialEq)]
pub struct Weights {
    /// First layer, `HIDDEN × PIXELS`, for pixels scaled to 0..1.
    pub w1: Vec<f32>,
    /// First layer's bias.
    pub b1: Vec<f32>,
    /// Second layer, `CLASSES × HIDDEN`.
    pub w2: Vec<f32>,
    /// Second layer's bias.
    pub b2: Vec<f32>,
}

/// The weights are the server's secret: not shown in full.
impl std::fmt::Debug for Weights {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Weights").finish_non_exhaustive()
    }
}

/// Reads and checks a model.
///
/// # Errors
/// If the file cannot be read or is no model of this shape, or a value is out of range.
pub fn read(path: &Path) -> Result<Weights, WeightsError> {
    let fail = |source| WeightsError::Read {
        path: path.to_owned(),
        source,
    };
    let length = std::fs::metadata(path).map_err(fail)?.len();
    if length > MAX_FILE {
        return Err(WeightsError::TooLarge {
            path: path.to_owned(),
            got: length,
        });
    }
    parse(&std::fs::read(path).map_err(fail)?, path)
}

fn parse(bytes: &[u8], path: &Path) -> Result<Weights, WeightsError> {
    let file = SafeTensors::deserialize(bytes).map_err(|e| WeightsError::Format {
        path: path.to_owned(),
        reason: e.to_string().replace('\n', " "),
    })?;
    let tensor = |name, shape: &[usize]| tensor(&file, path, name, shape);
    Ok(Weights {
        w1: tensor("W1", &[HIDDEN, PIXELS])?,
        b1: tensor("b1", &[HIDDEN])?,
        w2: tensor("W2", &[CLASSES, HIDDEN])?,
        b2: tensor("b2", &[CLASSES])?,
    })
}

fn tensor(
    file: &SafeTensors<'_>,
    path: &Path,
    name: &'static str,
    shape: &[usize],
) -> Result<Vec<f32>, WeightsError> {
    let view = file.tensor(name).map_err(|_| WeightsError::Missing {
        path: path.to_owned(),
        name,
    })?;
    if view.dtype() != Dtype::F32 || view.shape() != shape {
        return Err(WeightsError::Shape {
            path: path.to_owned(),
            name,
            expected: shape.to_vec(),
            got: format!("{:?} {:?}", view.dtype(), view.shape()),
        });
    }
    let (words, _) = view.data().as_chunks::<4>();
    let values: Vec<f32> = words.iter().map(|word| f32::from_le_bytes(*word)).collect();
    match values
        .iter()
        .position(|v| v.is_nan() || v.abs() >= MAX_WEIGHT)
    {
        Some(index) => Err(WeightsError::Value {
            path: path.to_owned(),
            name,
            index,
            got: values[index],
        }),
        None => Ok(values),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;
    use safetensors::tensor::TensorView;

    use super::*;

    fn file(
        change: impl FnOnce(&mut BTreeMap<&'static str, (Dtype, Vec<usize>, Vec<u8>)>),
    ) -> Vec<u8> {
        let mut tensors: BTreeMap<&'static str, (Dtype, Vec<usize>, Vec<u8>)> = BTreeMap::new();
        for (name, shape) in [
            ("W1", vec![64, 64]),
            ("b1", vec![64]),
            ("W2", vec![10, 64]),
            ("b2", vec![10]),
        ] {
            let count: usize = shape.iter().product();
            tensors.insert(
                name,
                (Dtype::F32, shape, 0.5f32.to_le_bytes().repeat(count)),
            );
        }
        change(&mut tensors);
        let views = tensors.iter().map(|(name, (dtype, shape, data))| {
            (*name, TensorView::new(*dtype, shape.clone(), data).unwrap())
        });
        safetensors::serialize(views, None).unwrap()
    }

    fn error(bytes: &[u8]) -> String {
        let text = parse(bytes, Path::new("m.safetensors"))
            .unwrap_err()
            .to_string();
        assert_eq!(text.lines().count(), 1, "{text}");
        text
    }

    #[test]
    fn reads_a_model() {
        let weights = parse(&file(|_| {}), Path::new("m")).unwrap();
        assert_eq!(
            (
                weights.w1.len(),
                weights.b1.len(),
                weights.w2.len(),
                weights.b2.len()
            ),
            (4096, 64, 640, 10)
        );
        assert!(weights.w1.iter().all(|v| *v == 0.5));
    }

    #[test]
    fn names_what_is_wrong() {
        let good = file(|_| {});
        assert!(error(&good[..good.len() - 1]).contains("no whole safetensors file"));
        assert!(error(b"").contains("no whole safetensors file"));
        assert!(
            error(b"\x89PNG\r\n\x1a\n and more than that").contains("no whole safetensors file")
        );
        let without = file(|t| {
            t.remove("W2");
        });
        assert!(error(&without).contains("no tensor \"W2\""));
        let turned = file(|t| t.get_mut("W2").unwrap().1 = vec![64, 10]);
        assert!(error(&turned).contains("is F32 [64, 10], expected F32 [10, 64]"));
        let typed = file(|t| t.get_mut("b1").unwrap().0 = Dtype::I32);
        assert!(error(&typed).contains("\"b1\" is I32 [64]"));
        for value in [f32::NAN, f32::INFINITY, -8.0, 1e30] {
            let bytes =
                file(|t| t.get_mut("b2").unwrap().2[4..8].copy_from_slice(&value.to_le_bytes()));
            assert!(error(&bytes).contains("at 1, expected a number"), "{value}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = parse(&bytes, Path::new("m"));
        }

        #[test]
        fn no_truncation_or_flip_makes_it_panic(cut in 0usize..20_000, at in 0usize..300, flip in any::<u8>()) {
            let mut bytes = file(|_| {});
            let cut = cut.min(bytes.len());
            prop_assert!(parse(&bytes[..cut], Path::new("m")).is_err() || cut == bytes.len());
            bytes[at] ^= flip;
            let _ = parse(&bytes, Path::new("m"));
        }
    }
}
