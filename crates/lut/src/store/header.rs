//! The first page of a store, which never changes: what it holds, whose it is, and under which kind of key.

use sha2::{Digest, Sha256};
use volvelle_net::Role;
use volvelle_prim::Prg;

use super::error::StoreError;
use super::key::{Kind, NONCE, SALT, SubKey, TAG};
use crate::{Index, Output, Shape};

const MAGIC: [u8; 16] = *b"VOLVELLE STORE\r\n";
/// Format of files and of the messages about them. An agreement parameter.
pub(super) const VERSION: u16 = 1;
/// The unit that a disk writes, or a multiple of it: nothing that changes shares a page with something else.
pub(super) const PAGE: usize = 4096;
/// Most tables at one index; one byte each in the header.
pub(super) const MAX_TABLES: usize = 1024;
pub(super) const ID: usize = 16;
/// Longest encoding of a shape.
pub(super) const MAX_SHAPE: usize = 5 + MAX_TABLES;
const CHECKSUM: usize = 32;

/// What a store is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Header {
    pub shape: Shape,
    pub role: Role,
    pub kind: Kind,
    pub salt: [u8; SALT],
    /// Drawn by both parties together: the same in two stores that were made with each other, and in no others.
    pub id: [u8; ID],
}

/// Why a page is no header.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    Foreign,
    Version(u16),
    Damaged,
}

impl Header {
    /// The page, without what [`Self::seal`] adds; and how much of it is filled.
    fn encode(&self) -> Vec<u8> {
        let mut page = MAGIC.to_vec();
        page.extend(VERSION.to_le_bytes());
        page.push(self.kind as u8);
        page.push(u8::from(self.role == Role::Server));
        page.extend(self.salt);
        page.extend(self.id);
        encode_shape(&self.shape, &mut page);
        page
    }

    /// What everything else in the file is bound to.
    pub fn digest(&self) -> [u8; CHECKSUM] {
        Sha256::digest(self.encode()).into()
    }

    /// The whole page. The checksum tells damage from a wrong key, the seal a wrong key from the right one.
    pub fn seal(&self, key: &SubKey, prg: &mut Prg) -> Result<Vec<u8>, StoreError> {
        let mut page = self.encode();
        page.extend(self.digest());
        let mut nonce = [0; NONCE];
        prg.fill_bytes(&mut nonce);
        let tag = key.seal(&nonce, &self.digest(), &mut [])?;
        page.extend(nonce);
        page.extend(tag);
        page.resize(PAGE, 0);
        Ok(page)
    }

    /// Reads a page; the seal is returned to be checked with [`Seal::fits`].
    pub fn decode(page: &[u8; PAGE]) -> Result<(Self, Seal), Refusal> {
        let mut rest = &page[..];
        if take::<16>(&mut rest).ok_or(Refusal::Damaged)? != MAGIC {
            return Err(Refusal::Foreign);
        }
        let version = u16::from_le_bytes(take(&mut rest).ok_or(Refusal::Damaged)?);
        if version != VERSION {
            return Err(Refusal::Version(version));
        }
        Self::decode_fields(&mut rest)
            .and_then(|header| Some((Seal::decode(&header, &mut rest)?, header)))
            .map(|(seal, header)| (header, seal))
            .ok_or(Refusal::Damaged)
    }

    fn decode_fields(rest: &mut &[u8]) -> Option<Self> {
        let [kind, role] = take(rest)?;
        let kind = Kind::from_code(kind)?;
        let role = match role {
            0 => Role::Client,
            1 => Role::Server,
            _ => return None,
        };
        Some(Self {
            kind,
            role,
            salt: take(rest)?,
            id: take(rest)?,
            shape: decode_shape(rest)?,
        })
    }
}

/// The end of a header.
pub(super) struct Seal {
    nonce: [u8; NONCE],
    tag: [u8; TAG],
}

impl Seal {
    fn decode(header: &Header, rest: &mut &[u8]) -> Option<Self> {
        let checksum: [u8; CHECKSUM] = take(rest)?;
        let seal = Self {
            nonce: take(rest)?,
            tag: take(rest)?,
        };
        (checksum == header.digest()).then_some(seal)
    }

    pub fn fits(&self, header: &Header, key: &SubKey) -> bool {
        key.unseal(&self.nonce, &header.digest(), &mut [], &self.tag)
    }
}

/// The next bytes.
pub(super) fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (first, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(*first)
}

/// `k`, kind of index, kind of output, number of tables, their widths.
pub(super) fn encode_shape(shape: &Shape, out: &mut Vec<u8>) {
    let (output, words): (u8, &[u32]) = match &shape.output {
        Output::Arithmetic { words } => (0, words),
        Output::Xor => (1, &[]),
    };
    out.push(shape.log_entries as u8);
    out.push(u8::from(shape.index == Index::Boolean));
    out.push(output);
    out.extend((words.len() as u16).to_le_bytes());
    out.extend(words.iter().map(|&bits| bits as u8));
}

pub(super) fn decode_shape(bytes: &mut &[u8]) -> Option<Shape> {
    let [log_entries, index, output, low, high] = take(bytes)?;
    let tables = usize::from(u16::from_le_bytes([low, high]));
    let index = match index {
        0 => Index::Arithmetic,
        1 => Index::Boolean,
        _ => return None,
    };
    let (words, rest) = bytes.split_at_checked(tables)?;
    *bytes = rest;
    let output = match output {
        0 => Output::Arithmetic {
            words: words.iter().map(|&bits| bits.into()).collect(),
        },
        1 if tables == 0 => Output::Xor,
        _ => return None,
    };
    let shape = Shape {
        log_entries: log_entries.into(),
        index,
        output,
    };
    check_shape(&shape).is_ok().then_some(shape)
}

/// Whether a store takes this shape.
pub(super) fn check_shape(shape: &Shape) -> Result<(), crate::LutError> {
    shape.check()?;
    match &shape.output {
        Output::Arithmetic { words } if words.len() > MAX_TABLES => {
            Err(StoreError::TooManyTables {
                max: MAX_TABLES,
                got: words.len(),
            }
            .into())
        }
        _ => Ok(()),
    }
}

/// A shape in words, for errors.
pub(super) fn describe(shape: &Shape) -> String {
    let entries = 1u64 << shape.log_entries;
    let index = shape.index;
    match &shape.output {
        Output::Xor => format!("{entries} entries, {index} index, XOR-shared outputs"),
        Output::Arithmetic { words } => {
            let mut widths: Vec<String> = words.iter().take(4).map(u32::to_string).collect();
            if words.len() > widths.len() {
                widths.push("…".to_owned());
            }
            let widths = widths.join(", ");
            format!("{entries} entries, {index} index, additive outputs of {widths} bits")
        }
    }
}
