//! Chains the entries of a run: each one is stored with a hash of itself and of the one before. Reading a run from its beginning
//! shows whether an entry was changed, lost or inserted by something else.

use tribunal_engine::ids::{ContentHasher, Hash, RunId};

use crate::damage::{DamagedRun, EntryProblem, GoodEntry};

/// An entry as its row contains it.
#[derive(Clone, Debug, Default)]
pub(crate) struct RawEntry {
    pub(crate) seq: u64,
    pub(crate) id: String,
    pub(crate) kind: String,
    pub(crate) wall_ms: i64,
    /// The stored text; `None` if it is a blob that does not exist.
    pub(crate) body: Option<Vec<u8>>,
    /// `None` in a format that this build does not know: it may chain entries in another way.
    pub(crate) chain: Option<String>,
    /// Whether long texts of the entry are blobs of their own.
    pub(crate) has_texts: bool,
}

/// The hash that is stored with an entry. Before the first entry of a run, the chain is the name of the run: so entries under
/// another name are noticed.
pub(crate) fn chain_entry(previous_chain: &str, entry_id: &str, kind: &str, body: &[u8]) -> Hash {
    let mut hasher = ContentHasher::default();
    for part in [previous_chain, entry_id, kind] {
        // The lengths keep two entries apart whose parts only begin elsewhere.
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part.as_bytes());
    }
    hasher.update(body);
    hasher.finish()
}

/// Follows the chain of one run while its entries are read in order.
#[derive(Clone, Debug)]
pub(crate) struct ChainReader {
    run_id: RunId,
    last_good: Option<GoodEntry>,
    last_seq: u64,
    last_chain: Option<String>,
}

impl ChainReader {
    /// Begins after an entry, or with the first one after number 0.
    pub(crate) fn start_after(run_id: &RunId, after_seq: u64, chain: Option<String>) -> ChainReader {
        ChainReader { run_id: run_id.clone(), last_good: None, last_seq: after_seq, last_chain: chain }
    }

    pub(crate) fn last_good(&self) -> Option<GoodEntry> {
        self.last_good
    }

    pub(crate) fn last_seq(&self) -> u64 {
        self.last_seq
    }

    /// Checks that this entry is the next one and is as it was recorded, and returns its text.
    pub(crate) fn check_next<'a>(&mut self, raw_entry: &'a RawEntry) -> Result<&'a [u8], DamagedRun> {
        let expected_seq = self.last_seq + 1;
        if raw_entry.seq != expected_seq {
            return Err(self.damage_at(EntryProblem::Missing { seq: expected_seq }));
        }
        let changed = EntryProblem::Changed { seq: expected_seq };
        let Some(body) = &raw_entry.body else { return Err(self.damage_at(changed)) };
        let is_intact = match (&raw_entry.chain, &self.last_chain) {
            (Some(chain), last_chain) => {
                let last_chain = last_chain.as_deref().unwrap_or(self.run_id.as_str());
                chain_entry(last_chain, &raw_entry.id, &raw_entry.kind, body).as_str() == chain
            }
            // Entries of a format that this build does not know count as unchained; no chained entry comes before them.
            (None, last_chain) => last_chain.is_none(),
        };
        if !is_intact {
            return Err(self.damage_at(changed));
        }
        self.last_seq = expected_seq;
        self.last_chain.clone_from(&raw_entry.chain);
        self.last_good =
            Some(GoodEntry { seq: expected_seq, wall_ms: u64::try_from(raw_entry.wall_ms).unwrap_or_default() });
        Ok(body)
    }

    pub(crate) fn damage_at(&self, problem: EntryProblem) -> DamagedRun {
        DamagedRun { run_id: self.run_id.clone(), problem, last_good: self.last_good }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chained_entries(texts: &[&str]) -> Vec<RawEntry> {
        let mut last_chain = String::from("r");
        let entries = texts.iter().enumerate().map(|(index, text)| {
            let id = index.to_string();
            last_chain = chain_entry(&last_chain, &id, "warned", text.as_bytes()).to_string();
            RawEntry {
                seq: index as u64 + 1,
                id,
                kind: "warned".into(),
                body: Some(text.as_bytes().to_vec()),
                chain: Some(last_chain.clone()),
                ..RawEntry::default()
            }
        });
        entries.collect()
    }

    /// Reads a chain and returns the number of the last good entry, with the problem after it.
    fn follow_chain(entries: &[RawEntry]) -> (u64, Option<EntryProblem>) {
        let mut reader = ChainReader::start_after(&RunId::new("r"), 0, None);
        let problem = entries.iter().find_map(|entry| reader.check_next(entry).err());
        (reader.last_seq(), problem.map(|damaged| damaged.problem))
    }

    #[test]
    fn every_change_of_an_entry_is_noticed() {
        let entries = chained_entries(&["a", "b", "c", "d"]);
        assert_eq!(follow_chain(&entries), (4, None));
        let changes: [fn(&mut RawEntry); 6] = [
            |entry| entry.body = Some(b"x".to_vec()),
            |entry| entry.body = None,
            |entry| entry.id = "other".into(),
            |entry| entry.kind = "boundary".into(),
            |entry| entry.chain = None,
            |entry| entry.chain = Some("0".repeat(64)),
        ];
        for change in changes {
            let mut changed_entries = entries.clone();
            change(&mut changed_entries[2]);
            assert_eq!(follow_chain(&changed_entries), (2, Some(EntryProblem::Changed { seq: 3 })));
        }
    }

    #[test]
    fn a_missing_or_swapped_entry_is_noticed() {
        let mut entries = chained_entries(&["a", "b", "c"]);
        let second_entry = entries.remove(1);
        assert_eq!(follow_chain(&entries), (1, Some(EntryProblem::Missing { seq: 2 })));
        entries.insert(1, RawEntry { seq: 2, ..entries[1].clone() });
        entries[2] = RawEntry { seq: 3, ..second_entry };
        assert_eq!(follow_chain(&entries), (1, Some(EntryProblem::Changed { seq: 2 })));
    }

    #[test]
    fn entries_of_another_run_are_noticed() {
        let entries = chained_entries(&["a", "b"]);
        let mut reader = ChainReader::start_after(&RunId::new("other"), 0, None);
        assert_eq!(reader.check_next(&entries[0]).unwrap_err().problem, EntryProblem::Changed { seq: 1 });
    }

    #[test]
    fn entries_without_a_chain_may_only_come_first() {
        let mut entries = chained_entries(&["a", "b"]);
        entries[0].chain = None;
        entries[1].chain = Some(chain_entry("r", "1", "warned", b"b").to_string());
        assert_eq!(follow_chain(&entries), (2, None));
        entries[1].chain = None;
        assert_eq!(follow_chain(&entries), (2, None));
    }
}
