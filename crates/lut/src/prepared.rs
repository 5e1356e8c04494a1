//! A batch of lookups prepared by any protocol: one way to call them all.

use volvelle_net::Channel;
use volvelle_ot::Ot;
use volvelle_prim::BitVec;

use crate::table::check_sizes;
use crate::{
    BitTable, Demand, Flute, FlutePlus, GarbledLut, Generator, KnownTables, Lookups, LutError,
    OneRound, OpLut, Ottt, Protocol, Setup, SpLut, Table,
};

/// A batch of lookups, prepared before their inputs are known, whatever the [`Protocol`]. It is used by
/// value, once.
pub struct Prepared {
    demand: Demand,
    material: Material,
}

enum Material {
    OneHot(Lookups),
    OneRound(OneRound),
    FlutePlus(FlutePlus),
    Flute(Flute),
    SpLut(SpLut),
    OpLut(OpLut),
    Ottt(Ottt),
    Garbled(GarbledLut),
}

impl Prepared {
    /// Prepares a demand. Both parties call this with the same arguments; the tables are public, and some
    /// protocols work them into what is prepared.
    ///
    /// # Errors
    /// If the protocol does not take the demand, the tables are others than the demand says, or the peer or
    /// OT fails.
    pub fn prepare(
        ch: &mut Channel,
        ot: &mut Ot,
        protocol: Protocol,
        demand: &Demand,
        tables: &[Table],
    ) -> Result<Self, LutError> {
        protocol.takes(demand)?;
        demand.check_tables(tables)?;
        check_sizes(demand.log_entries(), tables.iter().map(Table::len))?;
        let (shape, batch) = (demand.shape(), demand.batch());
        let onehot = |ch, ot, generator| Lookups::prepare(ch, ot, generator, shape, batch);
        let known = KnownTables {
            index: shape.index,
            sharing: demand.sharing(),
            tables,
        };
        let material = match protocol {
            Protocol::Rotation => Material::OneHot(onehot(ch, ot, Generator::Rotation)?),
            Protocol::Doubling => Material::OneHot(onehot(ch, ot, Generator::Doubling)?),
            Protocol::Tree => Material::OneHot(onehot(ch, ot, Generator::Tree)?),
            Protocol::OneRound => Material::OneRound(OneRound::prepare(ch, ot, shape, batch)?),
            Protocol::FlutePlus => {
                Material::FlutePlus(FlutePlus::prepare(ch, ot, shape.log_entries, batch)?)
            }
            Protocol::Flute => Material::Flute(Flute::prepare(ch, ot, shape.log_entries, batch)?),
            Protocol::SpLut => Material::SpLut(SpLut::prepare(ch, ot, shape.log_entries, batch)?),
            Protocol::OpLut => {
                Material::OpLut(OpLut::prepare(ch, ot, Setup::OneOfN, &known, batch)?)
            }
            Protocol::OpLutShifter => {
                Material::OpLut(OpLut::prepare(ch, ot, Setup::Shifter, &known, batch)?)
            }
            Protocol::Ottt => Material::Ottt(Ottt::prepare(ch, ot, &known, batch)?),
            Protocol::Garbled | Protocol::GarbledLog => {
                let garbling = protocol.garbling();
                Material::Garbled(GarbledLut::prepare(ch, ot, garbling, &known, batch)?)
            }
        };
        Ok(Self {
            demand: demand.clone(),
            material,
        })
    }

    /// What was asked for.
    #[must_use]
    pub fn demand(&self) -> &Demand {
        &self.demand
    }

    /// Looks up this party's shares of the indices in the tables it was prepared for. Returns, for each
    /// table, this party's shares of the entries, additive or XOR as the demand says. Shares of indices are taken modulo the
    /// number of entries.
    ///
    /// # Errors
    /// If the arguments do not fit what was prepared, or the peer fails.
    pub fn lookup(
        self,
        ch: &mut Channel,
        index: &[u64],
        tables: &[Table],
    ) -> Result<Vec<Vec<u64>>, LutError> {
        self.demand.check_tables(tables)?;
        let (xor, kind) = (self.demand.is_xor(), self.demand.shape().index);
        match self.material {
            Material::OneHot(lookups) if self.demand.is_bits() => {
                as_bits(tables, |tables| lookups.lookup_bits(ch, index, tables))
            }
            Material::OneHot(lookups) if xor => lookups.lookup_xor(ch, index, tables),
            Material::OneHot(lookups) => lookups.lookup(ch, index, tables),
            Material::OneRound(lookups) => lookups.lookup(ch, index, tables),
            Material::FlutePlus(lookups) if self.demand.is_bits() => {
                as_bits(tables, |tables| lookups.lookup_bits(ch, index, tables))
            }
            Material::FlutePlus(lookups) => lookups.lookup_xor(ch, index, tables),
            Material::Flute(lookups) => lookups.lookup_xor(ch, index, tables),
            Material::SpLut(lookups) if xor => lookups.lookup_xor(ch, kind, index, tables),
            Material::SpLut(lookups) => lookups.lookup(ch, kind, index, tables),
            Material::OpLut(lookups) => lookups.lookup(ch, index),
            Material::Ottt(lookups) => lookups.lookup(ch, index),
            Material::Garbled(lookups) => lookups.lookup(ch, index),
        }
    }
}

/// Tables of single bits have a faster way of their own.
fn as_bits(
    tables: &[Table],
    look_up: impl FnOnce(&[BitTable]) -> Result<Vec<BitVec>, LutError>,
) -> Result<Vec<Vec<u64>>, LutError> {
    let tables = tables
        .iter()
        .map(|table| BitTable::from_fn(table.len().ilog2(), |i| table.entries()[i as usize] == 1))
        .collect::<Result<Vec<_>, _>>()?;
    let outputs = look_up(&tables)?;
    Ok(outputs
        .iter()
        .map(|bits| bits.iter().map(u64::from).collect())
        .collect())
}
