//! Running aggregates: for each key one row, which is written anew at the end of each batch that changed it.
//!
//! Where the input itself is updates, what a record added is remembered under its id and taken back before it is replaced, so
//! that an aggregate of aggregates is right.

use stock::agg::{Args, code};
use stock::config::{Config, refuse};
use stock::group::{self, Head, Noted, Reader};
use stock::json;
use wasmill::state::{Map, Value as Single, Want};
use wasmill::{Kind, Out, Port, Record, Result, Transform, Value, dead_letter};

/// What goes in and out.
pub const MANIFEST: &str = include_str!("../manifest.json");
const OUT: Port = Port::of(MANIFEST, "out");
/// The aggregates of each key, behind the number of the batch that changed them last, plus one.
const TOTALS: Single<Vec<u8>> = Single::of(MANIFEST, "totals");
/// Members of exact sets by key; the sub-key is as that of a window at 0.
const MEMBERS: Map<[u8], ()> = Map::of(MANIFEST, "members");
/// What each id has added, by key.
const CONTRIBUTIONS: Map<[u8], Vec<u8>> = Map::of(MANIFEST, "contributions");

const STAMP: usize = 8;

wasmill::transform!(MANIFEST, Aggregate, Aggregate::new);

/// The transform.
pub struct Aggregate {
    head: Head,
    reader: Reader,
    /// Pointers to the id of an update; none when the input is records.
    id: Vec<usize>,
    changed: Noted,
    blank: Vec<u8>,
    row: Vec<u8>,
    member: Vec<u8>,
    total: Vec<u8>,
    before: Args,
}

impl Aggregate {
    /// Makes it of a configuration.
    ///
    /// # Errors
    /// What is wrong in words.
    pub fn new(config: Value<'_>) -> Result<Aggregate> {
        let mut c = Config::new(config)?;
        let updates = c.choice("input", &["records", "updates"])? == "updates";
        let pointers = c.strings("id")?;
        if updates == pointers.is_empty() {
            return Err(refuse("input: updates and id belong together: id says which record an update replaces"));
        }
        let head = Head::parse(&mut c, false)?;
        let mut reader = Reader::parse(&mut c)?;
        c.finish()?;
        head.check_names(&reader.aggregates)?;
        if updates {
            reader.aggregates.check_retractable()?;
        }
        let add = |p: &String| reader.pointers.add(p).map_err(|why| refuse(format!("id: {why}")));
        let id = pointers.iter().map(add).collect::<Result<_>>()?;
        let mut blank = vec![0; STAMP];
        reader.aggregates.init(&mut blank);
        let (changed, before) = (Noted::default(), Args::default());
        Ok(Aggregate { head, reader, id, changed, blank, row: Vec::new(), member: Vec::new(), total: Vec::new(), before })
    }

    /// The id of the record at hand, as one sub-key.
    fn read_id(&mut self, r: &Record<'_>) -> Result {
        let text = self.reader.find(r)?;
        self.member.clear();
        for &p in &self.id {
            let v = self.reader.found(p, text);
            match v.kind {
                Kind::Absent | Kind::Null | Kind::Object | Kind::Array => {
                    return Err(dead_letter(code::FIELD, format!("{} is no id: it is neither text nor a number", self.reader.pointers.text(p))));
                }
                Kind::Escaped => {
                    let mut plain = Vec::new();
                    json::unescape(v.raw, &mut plain);
                    json::string(&mut self.member, &plain);
                }
                _ => v.write(&mut self.member),
            }
            self.member.push(b',');
        }
        if r.state_key().len() + self.member.len() > 4096 {
            return Err(dead_letter(code::RANGE, "key and id are too long"));
        }
        Ok(())
    }

    /// Takes back what the id has added before, and notes what it adds now.
    fn replace(&mut self, key: &[u8], bytes: &mut [u8], out: &mut Out) -> Result {
        let mut e = CONTRIBUTIONS.entry(out, key, &self.member);
        if let Some(old) = e.get() {
            self.reader.aggregates.load_args(old, &mut self.before)?;
            self.reader.aggregates.retract(bytes, &self.before)?;
        }
        self.reader.aggregates.check_add(bytes, &self.reader.args)?;
        self.row.clear();
        self.reader.aggregates.store_args(&self.reader.args, &mut self.row);
        e.set(&self.row);
        Ok(())
    }

    /// Counts those members of exact sets that are new.
    fn add_members(&mut self, key: &[u8], bytes: &mut [u8], out: &mut Out) {
        for (i, value) in self.reader.aggregates.members(&self.reader.args) {
            let member = group::member(&mut self.member, 0, i, value);
            if !MEMBERS.contains(out, key, member) {
                MEMBERS.set(out, key, member, &());
                self.reader.aggregates.count_member(bytes, i);
            }
        }
    }
}

impl Transform for Aggregate {
    fn prefetch(&mut self, r: &Record<'_>, want: &mut Want<'_>) {
        let key = r.state_key();
        TOTALS.want(want, key);
        if !self.id.is_empty() {
            if self.read_id(r).is_ok() {
                CONTRIBUTIONS.want(want, key, &self.member);
            }
        } else if self.reader.aggregates.has_sets() && self.reader.read(r).is_ok() && self.reader.check_members(key).is_ok() {
            for (i, value) in self.reader.aggregates.members(&self.reader.args) {
                MEMBERS.want(want, key, group::member(&mut self.member, 0, i, value));
            }
        }
    }

    fn record(&mut self, r: Record<'_>, out: &mut Out) -> Result {
        let key = r.state_key();
        self.reader.read(&r)?;
        if self.id.is_empty() {
            self.reader.check_members(key)?;
        } else {
            self.read_id(&r)?;
        }
        let now = (out.batch().id + 1).to_le_bytes();
        let mut bytes = core::mem::take(&mut self.total);
        bytes.clear();
        match TOTALS.entry(out, key).get() {
            Some(total) => bytes.extend_from_slice(total),
            None => {
                self.head.check(key)?;
                bytes.extend_from_slice(&self.blank);
            }
        }
        let Some((stamp, group)) = bytes.split_at_mut_checked(STAMP) else {
            return self.reader.aggregates.check(b"");
        };
        self.reader.aggregates.check(group)?;
        let first = stamp != now;
        stamp.copy_from_slice(&now);
        if !self.id.is_empty() {
            self.replace(key, group, out)?;
        }
        self.reader.aggregates.add_fixed(group, &self.reader.args)?;
        self.add_members(key, group, out);
        if !self.reader.aggregates.is_fixed() {
            self.row.clear();
            self.row.extend_from_slice(group);
            if self.reader.aggregates.add_varying(&mut self.row, &self.reader.args, r.event_time().unwrap_or(0))? {
                bytes.truncate(STAMP);
                bytes.extend_from_slice(&self.row);
            }
        }
        group::store(&mut TOTALS.entry(out, key), &bytes)?;
        self.total = bytes;
        if first {
            self.changed.push(key, 0);
        }
        Ok(())
    }

    fn finish(&mut self, out: &mut Out) -> Result {
        let changed = core::mem::take(&mut self.changed);
        for (key, _) in changed.iter() {
            self.row.clear();
            self.row.push(b'{');
            let comma = self.head.write(key, None, &mut self.row);
            let e = TOTALS.entry(out, key);
            self.reader.aggregates.write(e.get().unwrap_or(b"").get(STAMP..).unwrap_or(b""), comma, &mut self.row)?;
            self.row.push(b'}');
            out.blank().key(key).value(Some(&self.row), OUT);
        }
        Ok(())
    }
}
