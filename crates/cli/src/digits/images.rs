//! Images as text: one image a line, 64 comma-separated pixels 0..16 row by row, then, if known, the class.
//!
//! This is the format of the UCI files themselves. Empty lines and lines that begin with `#` are skipped.

use std::path::{Path, PathBuf};

use super::{CLASSES, PIXEL_MAX, PIXELS};

/// Largest file that is read; some 300 000 images.
const MAX_FILE: u64 = 64 << 20;

/// What can be wrong with a file of images.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImagesError {
    /// The file cannot be read.
    #[error(
        "cannot read images from {path}: {source}; name a CSV file, such as data/digits-test.csv"
    )]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The file is larger than is read.
    #[error("{path} has {got} bytes, at most {MAX_FILE} are read; split it")]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// Its length.
        got: u64,
    },
    /// A line is no image.
    #[error(
        "{path}, line {line}: {reason}; expected {PIXELS} pixels 0..{PIXEL_MAX} and optionally the class"
    )]
    Line {
        /// The file.
        path: PathBuf,
        /// Line number, from 1.
        line: usize,
        /// What is wrong with it.
        reason: String,
    },
    /// There is no image in the file.
    #[error(
        "{0} has no images; expected one a line: {PIXELS} comma-separated pixels and optionally the class"
    )]
    Empty(PathBuf),
}

/// One image and, if known, what it shows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// Row by row, 0 (paper) to 16 (ink).
    pub pixels: [u8; PIXELS],
    /// The right answer, where the file gives it.
    pub class: Option<u8>,
}

/// Reads a file of images.
///
/// # Errors
/// If it cannot be read, or a line is no image, or there is none.
pub fn read(path: &Path) -> Result<Vec<Image>, ImagesError> {
    let fail = |source| ImagesError::Read {
        path: path.to_owned(),
        source,
    };
    let length = std::fs::metadata(path).map_err(fail)?.len();
    if length > MAX_FILE {
        return Err(ImagesError::TooLarge {
            path: path.to_owned(),
            got: length,
        });
    }
    let text = std::fs::read_to_string(path).map_err(fail)?;
    parse(&text, path)
}

/// The images in a text; `path` is named in errors.
fn parse(text: &str, path: &Path) -> Result<Vec<Image>, ImagesError> {
    let mut images = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        images.push(image(line).map_err(|reason| ImagesError::Line {
            path: path.to_owned(),
            line: number + 1,
            reason,
        })?);
    }
    if images.is_empty() {
        return Err(ImagesError::Empty(path.to_owned()));
    }
    Ok(images)
}

fn image(line: &str) -> Result<Image, String> {
    let fields: Vec<&str> = line.split(',').collect();
    if fields.len() != PIXELS && fields.len() != PIXELS + 1 {
        return Err(format!("{} values", fields.len()));
    }
    let mut pixels = [0; PIXELS];
    for (pixel, field) in pixels.iter_mut().zip(&fields) {
        *pixel = number(field, PIXEL_MAX)?;
    }
    let class = match fields.get(PIXELS) {
        Some(field) => Some(number(field, CLASSES as u8 - 1)?),
        None => None,
    };
    Ok(Image { pixels, class })
}

fn number(field: &str, max: u8) -> Result<u8, String> {
    match field.trim().parse::<u8>() {
        Ok(value) if value <= max => Ok(value),
        // The field may be anything, of any length: show its beginning only.
        _ => Err(format!(
            "\"{}\" is no number 0..{max}",
            field
                .trim()
                .chars()
                .take(20)
                .collect::<String>()
                .escape_debug()
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read_text(text: &str) -> Result<Vec<Image>, ImagesError> {
        parse(text, Path::new("x.csv"))
    }

    fn line(values: usize) -> String {
        vec!["7"; values].join(",")
    }

    #[test]
    fn reads_with_and_without_class() {
        let images = read_text(&format!("# source\n\n{}\n{}\n", line(64), line(65))).unwrap();
        assert_eq!(images.len(), 2);
        assert_eq!((images[0].class, images[1].class), (None, Some(7)));
        assert_eq!(images[0].pixels, [7; 64]);
    }

    #[test]
    fn names_the_line_and_the_reason() {
        for (text, reason) in [
            (line(63), "63 values"),
            (line(66), "66 values"),
            (line(64).replacen('7', "17", 1), "\"17\" is no number 0..16"),
            (line(64).replacen('7', "-1", 1), "\"-1\" is no number"),
            (
                line(64).replacen('7', "x\u{7}", 1),
                "\"x\\u{7}\" is no number",
            ),
            (line(64) + ",10", "\"10\" is no number 0..9"),
        ] {
            let error = read_text(&format!("# c\n{text}\n"))
                .unwrap_err()
                .to_string();
            assert!(
                error.contains("line 2") && error.contains(reason),
                "{error}"
            );
            assert_eq!(error.lines().count(), 1);
        }
        assert!(matches!(
            read_text("# nothing\n"),
            Err(ImagesError::Empty(_))
        ));
    }
}
