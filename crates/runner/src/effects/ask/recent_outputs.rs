//! Keeps the last outputs of agents in memory, since each new one is compared with them.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex, PoisonError},
};

use tribunal_engine::ids::Hash;
use tribunal_store::Store;

use crate::project::Project;

/// The most outputs that are kept.
const MAX_KEPT_OUTPUTS: usize = 16;
/// Longer outputs are read from the journal again.
const MAX_OUTPUT_BYTES: usize = 128 << 10;

#[derive(Debug, Default)]
pub(crate) struct RecentOutputs {
    kept_outputs: Mutex<VecDeque<KeptOutput>>,
}

#[derive(Debug)]
struct KeptOutput {
    hash: Hash,
    bytes: Arc<Vec<u8>>,
}

impl RecentOutputs {
    /// Keeps an output and returns its hash.
    pub fn add_output(&self, output: &[u8]) -> Hash {
        let hash = Hash::digest_of(output);
        if output.len() <= MAX_OUTPUT_BYTES {
            let mut kept_outputs = self.kept_outputs.lock().unwrap_or_else(PoisonError::into_inner);
            kept_outputs.push_back(KeptOutput { hash: hash.clone(), bytes: Arc::new(output.to_vec()) });
            if kept_outputs.len() > MAX_KEPT_OUTPUTS {
                kept_outputs.pop_front();
            }
        }
        hash
    }

    /// Returns an earlier output, from memory or from the journal.
    pub fn read_output(&self, project: &Project, output_hash: &Hash) -> Option<Arc<Vec<u8>>> {
        self.find_kept(output_hash).or_else(|| {
            let store = Store::reopen_read_only(&project.home_dir()).ok()?;
            store.read_blob(output_hash).ok().map(Arc::new)
        })
    }

    fn find_kept(&self, output_hash: &Hash) -> Option<Arc<Vec<u8>>> {
        let kept_outputs = self.kept_outputs.lock().unwrap_or_else(PoisonError::into_inner);
        kept_outputs.iter().find(|kept| kept.hash == *output_hash).map(|kept| kept.bytes.clone())
    }
}
