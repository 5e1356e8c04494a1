//! Files of numbers: one a line, decimal or hexadecimal (`0x…`). Empty lines and lines that begin with `#` are skipped.

use std::io::Read;
use std::path::{Path, PathBuf};

/// Largest file that is read; some 20 million numbers.
const MAX_FILE: u64 = 256 << 20;

/// What can be wrong with a file of numbers.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NumbersError {
    /// The file cannot be read.
    #[error("cannot read numbers from {path}: {source}")]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// The file is larger than is read.
    #[error("{path}: more than {MAX_FILE} bytes; split it")]
    TooLarge {
        /// The file.
        path: PathBuf,
    },
    /// A line is no number.
    #[error("{path}, line {line}: \"{got}\" is no number; expected decimal digits or 0x…")]
    Line {
        /// The file.
        path: PathBuf,
        /// Line number, from 1.
        line: usize,
        /// The beginning of the line.
        got: String,
    },
    /// A number that is too large for its place.
    #[error("{path}, line {line}: {got} is out of range, expected 0 to {max}")]
    Range {
        /// The file.
        path: PathBuf,
        /// Line number, from 1.
        line: usize,
        /// The number.
        got: u64,
        /// The largest that would do.
        max: u64,
    },
    /// There is no number in the file.
    #[error("{0} has no numbers; expected one a line")]
    Empty(PathBuf),
}

/// Reads a file (`-`: standard input) of numbers up to `max`.
///
/// # Errors
/// If it cannot be read, or a line is no such number, or there is none.
pub fn read(path: &Path, max: u64) -> Result<Vec<u64>, NumbersError> {
    let fail = |source| NumbersError::Read {
        path: path.to_owned(),
        source,
    };
    let mut text = String::new();
    if path == Path::new("-") {
        let stdin = std::io::stdin().lock();
        stdin.take(MAX_FILE + 1).read_to_string(&mut text)
    } else {
        let file = std::fs::File::open(path).map_err(fail)?;
        file.take(MAX_FILE + 1).read_to_string(&mut text)
    }
    .map_err(fail)?;
    if text.len() as u64 > MAX_FILE {
        return Err(NumbersError::TooLarge {
            path: path.to_owned(),
        });
    }
    parse(&text, path, max)
}

fn parse(text: &str, path: &Path, max: u64) -> Result<Vec<u64>, NumbersError> {
    let mut numbers = Vec::new();
    for (line, text) in (1..).zip(text.lines().map(str::trim)) {
        if text.is_empty() || text.starts_with('#') {
            continue;
        }
        let path = path.to_owned();
        let got = number(text).ok_or_else(|| NumbersError::Line {
            path: path.clone(),
            line,
            got: text.chars().take(40).collect(),
        })?;
        if got > max {
            return Err(NumbersError::Range {
                path,
                line,
                got,
                max,
            });
        }
        numbers.push(got);
    }
    if numbers.is_empty() {
        return Err(NumbersError::Empty(path.to_owned()));
    }
    Ok(numbers)
}

fn number(text: &str) -> Option<u64> {
    let (digits, radix) = match text.strip_prefix("0x") {
        Some(digits) => (digits, 16),
        None => (text, 10),
    };
    let plain = digits.chars().all(|c| c.is_ascii_hexdigit());
    plain.then(|| u64::from_str_radix(digits, radix).ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_in_lines() {
        let read = |text| parse(text, Path::new("f"), 300);
        assert_eq!(
            read("# squares\n1\n 0xff \r\n\n300").unwrap(),
            [1, 255, 300]
        );
        let error = |text| read(text).unwrap_err().to_string();
        assert!(error("1\n301\n").contains("f, line 2: 301 is out of range, expected 0 to 300"));
        assert!(error("\n-1").contains("f, line 2: \"-1\" is no number"));
        assert!(error("+1").contains("no number"));
        assert!(error("0x").contains("no number"));
        assert!(error("1,2").contains("no number"));
        assert!(error("18446744073709551616").contains("no number"));
        assert!(error("#\n\n").contains("has no numbers"));
    }
}
