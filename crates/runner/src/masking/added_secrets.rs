//! Finds the secrets that a change adds, for patches that must not bring any.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
};

use tribunal_engine::ids::Hash;

use super::{Masker, find_masks, mask_rule::PEM_KIND, merge_overlapping, pem_keys};

impl Masker {
    /// Lists the kinds of the secrets that a text has and none of the old texts has.
    pub fn find_added_kinds<'t>(
        &self,
        old_texts: impl Iterator<Item = &'t str>,
        new_text: &str,
    ) -> BTreeSet<&'static str> {
        let new_secrets = self.list_secrets(new_text);
        if new_secrets.is_empty() {
            return BTreeSet::new();
        }
        let old_secrets: BTreeSet<Hash> = old_texts.flat_map(|text| self.list_secrets(text).into_keys()).collect();
        let added_secrets = new_secrets.into_iter().filter(|(secret_hash, _)| !old_secrets.contains(secret_hash));
        added_secrets.map(|(_, mask_kind)| mask_kind).collect()
    }

    /// Lists the secrets of a text by their hashes, with their kinds.
    fn list_secrets(&self, text: &str) -> BTreeMap<Hash, &'static str> {
        let mut secrets = BTreeMap::new();
        let pem_patterns = &self.compiled.pem_patterns;
        let mut text_without_keys = Cow::Borrowed(text);
        if pem_patterns.occurs_in(text) {
            for key_text in pem_patterns.list_keys(text) {
                secrets.insert(Hash::digest_of(key_text.as_bytes()), PEM_KIND);
            }
            let mut collapsed = String::with_capacity(text.len());
            pem_keys::collapse_keys(pem_patterns, &mut pem_keys::PemState::default(), text, true, &mut collapsed);
            text_without_keys = Cow::Owned(collapsed);
        }
        for text_line in text_without_keys.lines() {
            let mask_ranges = find_masks(text_line);
            for found_secret in merge_overlapping(self.find_secrets(text_line)) {
                let range = found_secret.secret_range;
                let is_masked = mask_ranges.iter().any(|mask| mask.start < range.end && range.start < mask.end);
                if !is_masked {
                    secrets.insert(Hash::digest_of(&text_line.as_bytes()[range]), found_secret.mask_kind);
                }
            }
        }
        secrets
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token_text(letter: &str) -> String {
        format!("gh{}_{}", "p", letter.repeat(36))
    }

    fn key_text(body: &str) -> String {
        let marker = |word: &str| format!("-----{word} {} KEY-----", "PRIVATE");
        format!("{}\n{body}\n{}\n", marker("BEGIN"), marker("END"))
    }

    fn added_kinds(old_texts: &[&str], new_text: &str) -> Vec<&'static str> {
        Masker::new([("DEPLOY_TOKEN", "correcthorse")])
            .find_added_kinds(old_texts.iter().copied(), new_text)
            .into_iter()
            .collect()
    }

    #[test]
    fn only_secrets_that_were_nowhere_before_are_added() {
        let (old_token, new_token) = (token_text("a"), token_text("b"));
        let old_text = format!("Call it with {old_token}.\n");
        let (old_key, new_key) = (key_text("MIIBabcd"), key_text("MIIBefgh"));
        let table = [
            (vec![], "nothing here\n".to_string(), vec![]),
            (vec![old_text.clone()], format!("moved\n{old_text}"), vec![]),
            (vec![old_text.clone()], format!("{old_text}and {old_token} again\n"), vec![]),
            (vec![String::new(), old_text.clone()], old_text.clone(), vec![]),
            (vec![old_text.clone()], "Call it with [masked:github].\n".to_string(), vec![]),
            (vec![old_text.clone()], old_text.replace(&old_token, &new_token), vec!["github"]),
            (vec![], format!("x {old_token}\nlogin: correcthorse\n"), vec!["env", "github"]),
            (vec![old_key.clone()], format!("see\n{old_key}"), vec![]),
            (vec![old_key.clone()], new_key, vec!["pem"]),
        ];
        for (old_texts, new_text, expected) in table {
            let old_texts: Vec<&str> = old_texts.iter().map(String::as_str).collect();
            assert_eq!(added_kinds(&old_texts, &new_text), expected, "{old_texts:?} to {new_text:?}");
        }
    }
}
