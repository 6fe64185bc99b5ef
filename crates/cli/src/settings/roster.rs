//! The project's own personas, from the list of agents that BMAD's installer wrote, or from the settings in which late eras
//! keep them.
//!
//! A roster that cannot be used is a warning and never stops a review, because there are built-in personas. Links out of the
//! project are not followed.

use std::{fs, io, path::Path};

use tribunal_bmad::{ROSTER_PATH, roster, roster::of_layers};
use tribunal_core::plan::{LEAST, Persona};
use tribunal_runner::Project;

/// The maximum size of a roster; real ones have about 30 KB.
const MOST_BYTES: u64 = 1024 * 1024;

/// The personas that may take part in a party.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Roster {
    /// The personas; empty if the built-in ones are used.
    pub personas: Vec<Persona>,
    pub warning: Option<String>,
}

/// Reads the project's roster. A roster with fewer than `min_personas` is not used.
pub(super) fn of_project(root: &Path, least: u32) -> Roster {
    let ours = "parties use the built-in personas";
    let (path, found) = match found(root) {
        Ok(Some(found)) => found,
        Ok(None) => return Roster::default(),
        Err((path, what)) => {
            return Roster { personas: Vec::new(), warning: Some(format!("{path} {what}; {ours}")) };
        }
    };
    let warned = |what: &str, then: &str| Some(format!("{path} {what}; {then}"));
    let tribunal_bmad::Roster { personas, remarks, .. } = found;
    // The caller may ask for fewer than a party can be held with.
    let needed = LEAST.max(least as usize);
    if personas.len() >= needed {
        let warning = warned(&remarks.join(" and "), "the others take part").filter(|_| !remarks.is_empty());
        return Roster { personas, warning };
    }
    let warning = match personas.len() {
        // An installation of BMAD's core alone lists only its master, which is no persona. That is normal and not worth a
        // warning.
        0 if remarks.is_empty() => None,
        0 => warned(&remarks.join(" and "), ours),
        few => warned(&format!("has {few} personas and a party needs {needed}"), ours),
    };
    Roster { personas: Vec::new(), warning }
}

/// The TOML files of late eras, the weakest first.
const LAYERS: [&str; 4] = [
    "_bmad/config.toml",
    "_bmad/config.user.toml",
    "_bmad/custom/config.toml",
    "_bmad/custom/config.user.toml",
];

/// A roster with its file; or the file that could not be read, and why.
type Found = Result<Option<(&'static str, tribunal_bmad::Roster)>, (&'static str, String)>;

/// Finds the roster in the installer's list, or in the settings of late eras.
fn found(root: &Path) -> Found {
    // The installer's list wins if a project has both.
    if let Some(text) = text(root, ROSTER_PATH).map_err(|what| (ROSTER_PATH, what))? {
        return Ok(Some((ROSTER_PATH, roster(&text))));
    }
    let mut texts = Vec::new();
    for path in LAYERS {
        texts.extend(text(root, path).map_err(|what| (path, what))?);
    }
    Ok(of_layers(&texts).map(|roster| (LAYERS[0], roster)))
}

/// Reads a file of the project, if it exists and is inside the project.
fn text(root: &Path, path: &str) -> Result<Option<String>, String> {
    let path = root.join(path);
    match fs::symlink_metadata(&path) {
        // A file where a directory is expected means that there is no roster, either.
        Err(cause) if matches!(cause.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        Err(cause) => return Err(format!("cannot be read: {cause}")),
        Ok(_) => {}
    }
    if let Some(there) = Project::at(root).leads_out(&path) {
        return Err(format!("leads out of the project, to {}", there.display()));
    }
    match fs::metadata(&path) {
        // Reading a pipe would never end.
        Ok(meta) if !meta.is_file() => Err("is not a file".into()),
        Ok(meta) if meta.len() > MOST_BYTES => Err("is larger than 1 MB".into()),
        Ok(_) => fs::read_to_string(&path).map(Some).map_err(|cause| format!("cannot be read: {cause}")),
        Err(cause) => Err(format!("cannot be read: {cause}")),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    const THREE: &str = "title,role\nClerk,bills\nCook,food\nPilot,charts\n";

    fn project(manifest: &[u8]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(ROSTER_PATH);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, manifest).unwrap();
        folder
    }

    fn said(manifest: &[u8], least: u32) -> String {
        let roster = of_project(project(manifest).path(), least);
        let names: Vec<String> = roster.personas.iter().map(|persona| persona.name.clone()).collect();
        format!("{}|{}", names.join(","), roster.warning.unwrap_or_default())
    }

    #[test]
    fn a_roster_takes_part_when_a_party_can_be_held_with_it() {
        let at = |text: &str| format!("|{ROSTER_PATH} {text}; parties use the built-in personas");
        let big = "x".repeat(1_048_577);
        let broken = format!("{THREE}\"Mate,x\n");
        for (manifest, least, expected) in [
            (THREE.as_bytes(), 1, "Clerk,Cook,Pilot|".to_string()),
            (THREE.as_bytes(), 4, at("has 3 personas and a party needs 4")),
            (b"title\nClerk\nCook\n", 3, at("has 2 personas and a party needs 3")),
            (b"name,title\nbmad-master,Master\n", 3, "|".into()),
            (b"", 3, at("is empty")),
            (b"path,hash\n", 3, at("has no column `title`, `displayName` or `name`")),
            (b"title\nCl\xff", 3, at("cannot be read: stream did not contain valid UTF-8")),
            (big.as_bytes(), 3, at("is larger than 1 MB")),
            (
                broken.as_bytes(),
                3,
                format!(
                    "Clerk,Cook,Pilot|{ROSTER_PATH} has a quote in line 5 that is never closed; the others take part"
                ),
            ),
        ] {
            assert_eq!(said(manifest, least), expected);
        }
    }

    #[test]
    fn late_eras_keep_it_in_their_settings() {
        let folder = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            fs::create_dir_all(folder.path().join(path).parent().unwrap()).unwrap();
            fs::write(folder.path().join(path), text).unwrap();
        };
        let names = || {
            let Roster { personas, warning } = of_project(folder.path(), 2);
            (personas.iter().map(|persona| persona.name.clone()).collect::<Vec<_>>().join(","), warning)
        };
        write("_bmad/config.toml", "[core]\nuser_name = 'x'\n");
        assert_eq!(names(), (String::new(), None));
        write(
            "_bmad/config.toml",
            "[agents.a]\ntitle = 'Pilot'\n[agents.b]\ntitle = 'Cook'\n[agents.c]\ntitle = 'Clerk'\n",
        );
        write("_bmad/custom/config.toml", "[agents.c]\ntitle = 'Mate'\n");
        assert_eq!(names(), ("Pilot,Cook,Mate".into(), None));
        write("_bmad/custom/config.toml", "[agents.a]\ntitle = 'Cook'\n[agents.c]\ntitle = 'cook'\n");
        let few = "_bmad/config.toml has 1 personas and a party needs 3; parties use the built-in personas";
        assert_eq!(names().1.as_deref(), Some(few));
        write(ROSTER_PATH, THREE);
        assert_eq!(names().0, "Clerk,Cook,Pilot", "the list is asked first");
    }

    #[test]
    fn a_project_without_one_is_nothing_to_talk_about() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(of_project(folder.path(), 3), Roster::default());
        fs::write(folder.path().join("_bmad"), "a file").unwrap();
        assert_eq!(of_project(folder.path(), 3), Roster::default());
    }

    #[test]
    fn it_is_not_followed_out_of_the_project() {
        let elsewhere = project(THREE.as_bytes());
        for (link, to) in [
            (ROSTER_PATH, elsewhere.path().join(ROSTER_PATH)),
            ("_bmad/_config", elsewhere.path().join("_bmad/_config")),
            ("_bmad", elsewhere.path().join("_bmad")),
            (ROSTER_PATH, elsewhere.path().join("gone")),
        ] {
            let here = tempfile::tempdir().unwrap();
            fs::create_dir_all(here.path().join(link).parent().unwrap()).unwrap();
            symlink(&to, here.path().join(link)).unwrap();
            let roster = of_project(here.path(), 3);
            assert_eq!(roster.personas, [], "{link}");
            let warning = roster.warning.unwrap_or_default();
            assert!(warning.contains("leads out of the project, to "), "{link}: {warning}");
        }
        let within = project(THREE.as_bytes());
        fs::rename(within.path().join(ROSTER_PATH), within.path().join("team.csv")).unwrap();
        symlink("../../team.csv", within.path().join(ROSTER_PATH)).unwrap();
        assert_eq!(of_project(within.path(), 3).personas.len(), 3, "a link inside the project is followed");
    }
}
