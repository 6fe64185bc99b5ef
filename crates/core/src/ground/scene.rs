//! Everything under review: one file, or the files of a change with the lines that it removed.
//!
//! Evidence is searched in the named file first, then in the others. Lines that a change removed can be quoted, too: their
//! place is where they were.

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

/// One or several files, as they were when the panel read them.
#[derive(Clone, Debug)]
pub struct Scene<'a> {
    files: Vec<Ground<'a>>,
    /// The text that the change removed from each file; its lines count as if they were a file.
    removed: Vec<(Ground<'a>, Removed)>,
}

impl<'a> From<Ground<'a>> for Scene<'a> {
    fn from(ground: Ground<'a>) -> Self {
        Scene { files: vec![ground], removed: Vec::new() }
    }
}

impl<'a> Scene<'a> {
    /// Makes the scope of a frozen subject from its text, or from its diff and files. `None` if its section does not exist.
    pub fn of(subject: &'a Subject, text: &str, files: &'a [FrozenFile]) -> Option<Scene<'a>> {
        match subject.path() {
            Some(path) => Ground::new(path, text, subject.section()).map(Scene::from),
            // A change has no section, so this cannot fail.
            None => Some(Scene::of_change(subject, text, files)),
        }
    }

    /// Makes the scope with the whole file even if only a section is under review.
    pub fn whole(subject: &'a Subject, text: &str, files: &'a [FrozenFile]) -> Option<Scene<'a>> {
        match subject.path() {
            Some(path) => Ground::new(path, text, None).map(Scene::from),
            None => Some(Scene::of_change(subject, text, files)),
        }
    }

    fn of_change(subject: &'a Subject, diff: &str, files: &'a [FrozenFile]) -> Scene<'a> {
        let changed = read(diff);
        let touched = |path: &'a str| changed.iter().filter(move |one| one.touched.file == path);
        // A symbol that one file defines may be used in another, so all files get all symbols.
        let symbols = changed.iter().flat_map(|one| one.touched.symbols.iter().cloned()).collect();
        let names = Touched { symbols, ..Touched::default() };
        let grounds = files.iter().map(|file| {
            let own = touched(&file.path).map(|one| one.touched.clone()).chain([names.clone()]).collect();
            Ground::code(&file.path, &file.text).of_change(own)
        });
        // Deleted files are included: they are in the subject, but not among the frozen files.
        let removed = subject.files().into_iter().flat_map(|path| {
            let gone = touched(path).map(|one| &one.removed).filter(|gone| !gone.text.is_empty());
            gone.map(move |gone| (Ground::code(path, &gone.text), gone.clone()))
        });
        Scene { files: grounds.collect(), removed: removed.collect() }
    }

    /// Makes a scope of files without knowledge of what changed in them.
    pub fn of_files(files: impl Iterator<Item = (&'a str, &'a str)>) -> Scene<'a> {
        Scene { files: files.map(|(path, text)| Ground::code(path, text)).collect(), removed: Vec::new() }
    }

    fn is_one_file(&self) -> bool {
        self.files.len() == 1 && self.files[0].touched.is_none()
    }

    /// Finds the evidence of a claim, or returns the reason why it was not found.
    pub fn find(&self, raised: &Raised) -> Result<Grounded, String> {
        // A single file needs neither file names nor removed lines.
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
                // The quote is in an unchanged part, but the change may also have removed the same text elsewhere.
                Ok(found) => return Ok(self.taken_out(raised).unwrap_or(found)),
                Err(_) => {}
            }
        }
        // The line belongs to the named file, so it means nothing in other files.
        let anywhere = Raised { line: None, ..raised.clone() };
        let named_none = !self.files.iter().any(|ground| named(&ground));
        let wanted = if named_none && self.files.len() == 1 { raised } else { &anywhere };
        let mut found = self.files.iter().filter_map(|ground| ground.find(wanted).ok());
        let first = found.next();
        // A match in the changed lines beats removed text, and both beat an earlier match in unchanged lines.
        let of_change = first.iter().cloned().chain(found).find(|found| !found.pre_existing);
        of_change
            .or_else(|| self.taken_out(raised))
            .or(first)
            .ok_or_else(|| "the quote stands in no file of the change".to_string())
    }

    /// Finds a quote in the removed lines; its place is where they were.
    fn taken_out(&self, raised: &Raised) -> Option<Grounded> {
        let anywhere = Raised { line: None, ..raised.clone() };
        let named = |ground: &Ground<'_>| raised.file.as_ref().is_none_or(|file| ground.is_called(file));
        let (ground, removed) = self
            .removed
            .iter()
            .filter(|(ground, _)| named(ground))
            // The named file comes first, the others follow.
            .chain(self.removed.iter().filter(|(ground, _)| !named(ground)))
            .find(|(ground, _)| ground.find(&anywhere).is_ok())?;
        let found = ground.find(&anywhere).ok()?;
        // The finder numbers the removed lines themselves; the place needs the line of the new file.
        let at = |line: u32| removed.lines.get(line as usize - 1).copied().unwrap_or(1);
        let place = Place {
            line: at(found.place.line),
            end_line: at(found.place.end_line).max(at(found.place.line)),
            ..found.place
        };
        let how = Found { how: How::Removed, places: 1 };
        Some(Grounded { place, found: Some(how), ..found })
    }

    /// Splits a heading that is a file's name, or has one in front of it.
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
            // Without a heading the terms must be absent in every file of the change.
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

    /// Whether the evidence can be found in any file.
    pub fn holds(&self, evidence: &Evidence) -> bool {
        self.files.iter().any(|ground| ground.holds(evidence))
            || self
                .removed
                .iter()
                .any(|(ground, _)| matches!(evidence, Evidence::Quote { .. }) && ground.holds(evidence))
    }

    /// Whether the evidence can be found in this file; without a place it may be in any file.
    pub fn holds_in(&self, place: Option<&Place>, evidence: &Evidence) -> bool {
        match place.and_then(|place| self.files.iter().find(|ground| ground.file == place.file)) {
            Some(ground) => ground.holds(evidence),
            None => self.files.iter().any(|ground| ground.holds(evidence)),
        }
    }

    /// Whether the scope contains this file.
    pub fn has(&self, file: &str) -> bool {
        self.files.iter().any(|ground| ground.file == file)
    }

    /// Whether the missing text is there: under its heading, or in the file that the heading names.
    pub fn says(&self, heading: &str, terms: &[String]) -> bool {
        self.files.iter().any(|ground| ground.says(heading, terms))
    }

    /// Whether one of the terms occurs in any file.
    pub fn mentions(&self, terms: &[String]) -> bool {
        self.files.iter().any(|ground| ground.says("", terms))
    }
}

impl<'a> Ground<'a> {
    /// Makes a finder for a file of a change. Headings exist only in prose: in code `#` begins a comment or an attribute.
    fn code(file: &'a str, text: &str) -> Ground<'a> {
        Ground::whole(file, text, crate::subject::is_prose(file))
    }

    /// Whether a name such as `src/a.rs`, `a/src/a.rs`, `./src/a.rs` or `a.rs` can mean this file.
    fn is_called(&self, name: &str) -> bool {
        let name = name.trim().trim_start_matches("./");
        let below = |long: &str, short: &str| {
            long.strip_suffix(short).is_some_and(|rest| rest.is_empty() || rest.ends_with('/'))
        };
        // Agents name files relative to the project or to their workspace, so either may be the longer path.
        !name.is_empty() && (below(self.file, name) || below(name, self.file))
    }

    /// Finds an absence in a changed file. Without a heading it always belongs to the change.
    fn absence_in_change(
        &self,
        heading: &str,
        terms: &[String],
        line: Option<u32>,
    ) -> Result<Grounded, String> {
        let mut found = self.absence(heading, terms, line)?;
        let touched = self.touched.iter().flatten().flat_map(|touched| &touched.lines);
        // Without a heading the first changed line is a better place than the beginning of the file.
        if let (true, Some((first, _))) = (heading.is_empty(), touched.into_iter().next()) {
            (found.place.line, found.place.end_line) = (*first, *first);
        }
        let away = |touched: &Vec<_>| !is_touched(&found.place, touched);
        found.pre_existing = !heading.is_empty() && self.touched.as_ref().is_some_and(away);
        Ok(found)
    }
}
