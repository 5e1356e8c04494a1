//! How many entries a table has.

use std::fmt;
use std::str::FromStr;

use volvelle_lut::MAX_LOG_ENTRIES;

/// A number of entries as given. Protocols take the next power of two: the table is padded with zeros, and that is
/// said. Displayed, and as a number, it is the padded one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entries(u32);

impl Entries {
    /// As protocols take it.
    pub fn padded(self) -> u32 {
        self.0.next_power_of_two()
    }

    /// `k`, where the padded table has `2^k` entries.
    pub fn log(self) -> u32 {
        self.padded().ilog2()
    }

    /// What there is to say, if it is not what was given.
    pub fn padding(self) -> Option<String> {
        let (given, padded) = (self.0, self.padded());
        (padded != given).then(|| format!("{given} entries are padded to {padded}"))
    }

    /// Says it on standard error.
    pub fn say_padding(self) {
        if let Some(padding) = self.padding() {
            eprintln!("{padding}");
        }
    }
}

impl FromStr for Entries {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.trim().parse() {
            Ok(n) if (2..=1 << MAX_LOG_ENTRIES).contains(&n) => Ok(Self(n)),
            _ => Err(format!(
                "entries must be 2 to {}, got `{text}`",
                1u32 << MAX_LOG_ENTRIES
            )),
        }
    }
}

impl fmt::Display for Entries {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.padded().fmt(f)
    }
}

impl From<Entries> for u64 {
    fn from(entries: Entries) -> Self {
        entries.padded().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn padded_to_a_power_of_two() {
        let read = |text: &str| text.parse::<Entries>();
        for (text, padded, said) in [
            ("2", 2_u32, false),
            ("3", 4, true),
            ("256", 256, false),
            ("257", 512, true),
            ("1048575", 1 << 20, true),
        ] {
            let entries = read(text).unwrap();
            assert_eq!((entries.padded(), entries.log()), (padded, padded.ilog2()));
            assert_eq!(entries.padding().is_some(), said, "{text}");
        }
        for wrong in ["0", "1", "1048577", "-2", "x", ""] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
