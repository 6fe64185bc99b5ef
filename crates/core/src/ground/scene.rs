//! All that is under review: one file, or the files of a change with what it took out of them.
//!
//! Evidence is looked for in the file that was named, then in the others. What a change removed can be quoted, too: its
//! place is where it stood.

use alloc::{
    format,
    string::{String, ToString},
    vec,
    vec::Vec,
};

use super::{
    Ground, Grounded,
    change::{Removed, Touched, is_touched, read},
};
use crate::{
    brief::Raised,
    files::FrozenFile,
    finding::{Evidence, Found, How, Place},
    subject::Subject,
};

/// One file or several, as they stood when the panel read them.
#[derive(Clone, Debug)]
pub struct Scene<'a> {
    files: Vec<Ground<'a>>,
    /// What the change took out, file by file; its lines count as if they were a file.
    removed: Vec<(Ground<'a>, Removed)>,
}

impl<'a> From<Ground<'a>> for Scene<'a> {
    fn from(ground: Ground<'a>) -> Self {
        Scene { files: vec![ground], removed: Vec::new() }
    }
}

impl<'a> Scene<'a> {
    /// Of a subject as it was frozen: its text, or its diff and files. None: its section does not exist.
    pub fn of(subject: &'a Subject, text: &str, files: &'a [FrozenFile]) -> Option<Scene<'a>> {
        match subject.path() {
            Some(path) => Ground::new(path, text, subject.section()).map(Scene::from),
            None => Some(Scene::of_change(subject, text, files)),
        }
    }

    /// The same with the whole file, whatever section is under review.
    pub fn whole(subject: &'a Subject, text: &str, files: &'a [FrozenFile]) -> Option<Scene<'a>> {
        match subject.path() {
            Some(path) => Ground::new(path, text, None).map(Scene::from),
            None => Some(Scene::of_change(subject, text, files)),
        }
    }

    fn of_change(subject: &'a Subject, diff: &str, files: &'a [FrozenFile]) -> Scene<'a> {
        let changed = read(diff);
        let touched = |path: &'a str| changed.iter().filter(move |one| one.touched.file == path);
        // What one file defines, another may use.
        let symbols = changed.iter().flat_map(|one| one.touched.symbols.iter().cloned()).collect();
        let names = Touched { symbols, ..Touched::default() };
        let grounds = files.iter().map(|file| {
            let own = touched(&file.path).map(|one| one.touched.clone()).chain([names.clone()]).collect();
            Ground::code(&file.path, &file.text).of_change(own)
        });
        // Also of files that it deleted.
        let removed = subject.files().into_iter().flat_map(|path| {
            let gone = touched(path).map(|one| &one.removed).filter(|gone| !gone.text.is_empty());
            gone.map(move |gone| (Ground::code(path, &gone.text), gone.clone()))
        });
        Scene { files: grounds.collect(), removed: removed.collect() }
    }

    /// Files as they are, without a word about what changed in them.
    pub fn of_files(files: impl Iterator<Item = (&'a str, &'a str)>) -> Scene<'a> {
        Scene { files: files.map(|(path, text)| Ground::code(path, text)).collect(), removed: Vec::new() }
    }

    fn is_one_file(&self) -> bool {
        self.files.len() == 1 && self.files[0].touched.is_none()
    }

    /// Where a claim's evidence stands and how it was found, or why it was not.
    pub fn find(&self, raised: &Raised) -> Result<Grounded, String> {
        if self.is_one_file() {
            return self.files[0].find(raised);
        }
        match &raised.evidence {
            Evidence::Quote { .. } => self.quote(raised),
            Evidence::Absence { heading, terms } => {
                let (file, heading) = self.file_of(heading, raised);
                self.absence(file, heading, terms, raised.line)
            }
        }
    }

    fn quote(&self, raised: &Raised) -> Result<Grounded, String> {
        let named = |ground: &&Ground<'_>| raised.file.as_ref().is_some_and(|file| ground.is_called(file));
        if let Some(ground) = self.files.iter().find(named) {
            match ground.find(raised) {
                Ok(found) if !found.pre_existing => return Ok(found),
                Ok(found) => return Ok(self.taken_out(raised).unwrap_or(found)),
                Err(_) => {}
            }
        }
        // A line is a line of the file that was named.
        let anywhere = Raised { line: None, ..raised.clone() };
        let named_none = !self.files.iter().any(|ground| named(&ground));
        let wanted = if named_none && self.files.len() == 1 { raised } else { &anywhere };
        let mut found = self.files.iter().filter_map(|ground| ground.find(wanted).ok());
        let first = found.next();
        let of_change = first.iter().cloned().chain(found).find(|found| !found.pre_existing);
        of_change
            .or_else(|| self.taken_out(raised))
            .or(first)
            .ok_or_else(|| "the quote stands in no file of the change".to_string())
    }

    /// A quote of what the change removed: it belongs where it stood.
    fn taken_out(&self, raised: &Raised) -> Option<Grounded> {
        let anywhere = Raised { line: None, ..raised.clone() };
        let named = |ground: &Ground<'_>| raised.file.as_ref().is_none_or(|file| ground.is_called(file));
        let (ground, removed) = self
            .removed
            .iter()
            .filter(|(ground, _)| named(ground))
            .chain(self.removed.iter().filter(|(ground, _)| !named(ground)))
            .find(|(ground, _)| ground.find(&anywhere).is_ok())?;
        let found = ground.find(&anywhere).ok()?;
        let at = |line: u32| removed.lines.get(line as usize - 1).copied().unwrap_or(1);
        let place = Place {
            line: at(found.place.line),
            end_line: at(found.place.end_line).max(at(found.place.line)),
            ..found.place
        };
        let how = Found { how: How::Removed, places: 1 };
        Some(Grounded { place, found: Some(how), ..found })
    }

    /// A heading may be a file's name, or have one in front of it.
    fn file_of<'h>(&self, heading: &'h str, raised: &Raised) -> (Option<&Ground<'a>>, &'h str) {
        for ground in &self.files {
            let rest = ground.without_file(heading);
            if rest != heading.trim() {
                return (Some(ground), rest);
            }
        }
        let named = |ground: &&Ground<'_>| raised.file.as_ref().is_some_and(|file| ground.is_called(file));
        (self.files.iter().find(named), heading.trim())
    }

    fn absence(
        &self,
        file: Option<&Ground<'a>>,
        heading: &str,
        terms: &[String],
        line: Option<u32>,
    ) -> Result<Grounded, String> {
        if let Some(ground) = file {
            return ground.absence_in_change(heading, terms, line);
        }
        if heading.is_empty() {
            // Nowhere in the change.
            let mut first = None;
            for ground in &self.files {
                let found = ground.absence_in_change("", terms, None)?;
                first = first.or(Some(found));
            }
            return first.ok_or_else(|| "the change has no files to look at".to_string());
        }
        let under = self.files.iter().find(|ground| ground.under(heading, line).is_ok());
        match under {
            Some(ground) => ground.absence_in_change(heading, terms, line),
            None => Err(format!("there is no heading or file `{heading}`")),
        }
    }

    /// Whether the evidence still stands anywhere.
    pub fn holds(&self, evidence: &Evidence) -> bool {
        self.files.iter().any(|ground| ground.holds(evidence))
            || self
                .removed
                .iter()
                .any(|(ground, _)| matches!(evidence, Evidence::Quote { .. }) && ground.holds(evidence))
    }

    /// Whether it still stands in this file; what has no place may stand anywhere.
    pub fn holds_in(&self, place: Option<&Place>, evidence: &Evidence) -> bool {
        match place.and_then(|place| self.files.iter().find(|ground| ground.file == place.file)) {
            Some(ground) => ground.holds(evidence),
            None => self.files.iter().any(|ground| ground.holds(evidence)),
        }
    }

    /// Whether this file is part of it.
    pub fn has(&self, file: &str) -> bool {
        self.files.iter().any(|ground| ground.file == file)
    }

    /// Whether what was missing is there: under its heading, or in the file that the heading names.
    pub fn says(&self, heading: &str, terms: &[String]) -> bool {
        self.files.iter().any(|ground| ground.says(heading, terms))
    }

    /// Whether one of the terms stands anywhere in it.
    pub fn mentions(&self, terms: &[String]) -> bool {
        self.files.iter().any(|ground| ground.says("", terms))
    }
}

impl<'a> Ground<'a> {
    /// A file of a change: headings are headings only in prose.
    fn code(file: &'a str, text: &str) -> Ground<'a> {
        Ground::whole(file, text, crate::subject::is_prose(file))
    }

    /// `src/a.rs`, `a/src/a.rs`, `./src/a.rs` and `a.rs` may all mean it.
    fn is_called(&self, name: &str) -> bool {
        let name = name.trim().trim_start_matches("./");
        let below = |long: &str, short: &str| {
            long.strip_suffix(short).is_some_and(|rest| rest.is_empty() || rest.ends_with('/'))
        };
        !name.is_empty() && (below(self.file, name) || below(name, self.file))
    }

    /// What is missing in a file that was changed is the change's business.
    fn absence_in_change(
        &self,
        heading: &str,
        terms: &[String],
        line: Option<u32>,
    ) -> Result<Grounded, String> {
        let mut found = self.absence(heading, terms, line)?;
        let touched = self.touched.iter().flatten().flat_map(|touched| &touched.lines);
        if let (true, Some((first, _))) = (heading.is_empty(), touched.into_iter().next()) {
            (found.place.line, found.place.end_line) = (*first, *first);
        }
        let away = |touched: &Vec<_>| !is_touched(&found.place, touched);
        found.pre_existing = !heading.is_empty() && self.touched.as_ref().is_some_and(away);
        Ok(found)
    }
}
