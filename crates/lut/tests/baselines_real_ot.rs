//! The baselines over OTs that are made while they run: an extension may come between any two of their messages.

use volvelle_lut::{
    GarbledLut, Garbling, Index, KnownTables, LutError, OpLut, Ottt, Setup, Sharing, Table,
};
use volvelle_net::Channel;
use volvelle_net::testing::run_pair;
use volvelle_ot::softspoken::Piece;
use volvelle_ot::{Engine, Ot, OtConfig};

const LOG_ENTRIES: u32 = 6;
const BATCH: usize = 4000;

type Shares = Vec<(Sharing, Vec<u64>)>;

fn party(ch: &mut Channel, index: &[u64], table: &Table) -> Result<Shares, LutError> {
    let mut ot = Ot::setup(ch, OtConfig::new(Engine::SoftSpoken(Piece::Two)))?;
    let mut outputs = Vec::new();
    for sharing in [Sharing::Additive, Sharing::Xor] {
        let known = KnownTables {
            index: Index::Arithmetic,
            sharing,
            tables: std::slice::from_ref(table),
        };
        let mut keep = |mut shares: Vec<Vec<u64>>| outputs.push((sharing, shares.remove(0)));
        for setup in [Setup::OneOfN, Setup::Shifter] {
            let prepared = OpLut::prepare(ch, &mut ot, setup, &known, BATCH)?;
            keep(prepared.lookup(ch, index)?);
        }
        let prepared = Ottt::prepare(ch, &mut ot, &known, BATCH)?;
        keep(prepared.lookup(ch, index)?);
        let prepared = GarbledLut::prepare(ch, &mut ot, Garbling::Rows, &known, BATCH)?;
        keep(prepared.lookup(ch, index)?);
        if sharing == Sharing::Xor {
            let prepared = GarbledLut::prepare(ch, &mut ot, Garbling::LogRow, &known, BATCH)?;
            keep(prepared.lookup(ch, index)?);
        }
    }
    Ok(outputs)
}

#[test]
fn over_ots_made_meanwhile() {
    let table = Table::from_fn(LOG_ENTRIES, 12, |i| i * i + 1).unwrap();
    let index = |step: u64| -> Vec<u64> { (0..BATCH as u64).map(|i| i * step).collect() };
    let (x, y) = (index(7), index(11));
    let (a, b) = run_pair(|ch| party(ch, &x, &table), |ch| party(ch, &y, &table));
    let (a, b) = (a.unwrap(), b.unwrap());
    assert_eq!((a.len(), b.len()), (9, 9));
    for (protocol, ((sharing, a), (_, b))) in a.iter().zip(&b).enumerate() {
        for i in 0..BATCH {
            let at = Index::Arithmetic.join(x[i], y[i], LOG_ENTRIES);
            let got = sharing.add(a[i], b[i]) % (1 << 12);
            assert_eq!(got, at * at + 1, "protocol {protocol}, lookup {i}");
        }
    }
}
