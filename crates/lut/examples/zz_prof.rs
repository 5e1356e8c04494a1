//! temp
use volvelle_lut::*; use volvelle_net::testing::run_pair; use volvelle_ot::testing::ideal_pair;
fn main(){
 let k: u32 = std::env::args().nth(1).map(|s| s.parse().unwrap()).unwrap_or(8);
 let bool_ = std::env::args().nth(2).is_some();
 let batch=100_000;
 for run in 0..20 {
  let (mut a, mut b) = ideal_pair(run);
  let shape = Shape{log_entries:k,index: if bool_ {Index::Boolean} else {Index::Arithmetic},output:Output::Xor};
  run_pair(|ch| drop(Lookups::prepare(ch,&mut a,Generator::Doubling,&shape,batch).unwrap()), |ch| drop(Lookups::prepare(ch,&mut b,Generator::Doubling,&shape,batch).unwrap()));
 }
}
