//! The project's own personas, from the list of agents that BMAD's installer wrote, or from the settings in which late eras
//! keep them.
//!
//! A roster that cannot be used is a warning and never stops a review, because there are built-in personas. Links out of the
//! project are not followed.

use std::{fs, io, path::Path};

use tribunal_bmad::{CUSTOM_ROSTER_PATH, ROSTER_PATH, parse_roster, roster::roster_from_toml};
use tribunal_runner::Project;
use tribunal_workflows::findings::seat_plan::{MIN_PICKS, Persona};

/// The maximum size of a roster file.
const MAX_ROSTER_BYTES: u64 = 1024 * 1024;

/// The personas that may take part in a party.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct PartyRoster {
    /// The personas; empty if the built-in ones are used.
    pub personas: Vec<Persona>,
    pub warning: Option<String>,
}

/// Reads the project's roster. A roster with fewer than `min_personas` is not used.
pub(super) fn read_roster(project_root: &Path, min_personas: u32) -> PartyRoster {
    let built_in_note = "parties use the built-in personas";
    let (roster_path, found_roster) = match find_roster(project_root) {
        Ok(Some(found_roster)) => found_roster,
        Ok(None) => return PartyRoster::default(),
        Err((roster_path, problem_text)) => {
            return PartyRoster {
                personas: Vec::new(),
                warning: Some(format!("{roster_path} {problem_text}; {built_in_note}")),
            };
        }
    };
    let make_warning =
        |problem_text: &str, consequence: &str| Some(format!("{roster_path} {problem_text}; {consequence}"));
    let tribunal_bmad::Roster { personas, remarks, .. } = found_roster;
    // The caller may ask for fewer than a party can be held with.
    let needed_personas = MIN_PICKS.max(min_personas as usize);
    if personas.len() >= needed_personas {
        let warning =
            make_warning(&remarks.join(" and "), "the other personas take part").filter(|_| !remarks.is_empty());
        return PartyRoster { personas, warning };
    }
    let warning = match personas.len() {
        // An installation of BMAD's core alone lists only its master, which is no persona. That is normal and not worth a
        // warning.
        0 if remarks.is_empty() => None,
        0 => make_warning(&remarks.join(" and "), built_in_note),
        persona_count => {
            make_warning(&format!("has {persona_count} personas, but a party needs {needed_personas}"), built_in_note)
        }
    };
    PartyRoster { personas: Vec::new(), warning }
}

/// The TOML files of late eras, the weakest first.
const LAYER_PATHS: [&str; 4] =
    ["_bmad/config.toml", "_bmad/config.user.toml", "_bmad/custom/config.toml", "_bmad/custom/config.user.toml"];

/// A roster with its file; or the file that could not be read, and why.
type RosterResult = Result<Option<(&'static str, tribunal_bmad::Roster)>, (&'static str, String)>;

/// Finds the roster in the installer's list, or in the settings of late eras, and adds the project's custom agents.
fn find_roster(project_root: &Path) -> RosterResult {
    let installed = find_installed_roster(project_root)?;
    let custom_text = read_inside_project(project_root, CUSTOM_ROSTER_PATH)
        .map_err(|problem_text| (CUSTOM_ROSTER_PATH, problem_text))?;
    let Some(custom_text) = custom_text else { return Ok(installed) };
    let (roster_path, mut roster) = installed.unwrap_or((CUSTOM_ROSTER_PATH, tribunal_bmad::Roster::default()));
    roster.add_custom_agents(&custom_text);
    Ok(Some((roster_path, roster)))
}

/// Finds the roster that an installer wrote.
fn find_installed_roster(project_root: &Path) -> RosterResult {
    // The installer's list wins if a project has both.
    if let Some(roster_text) =
        read_inside_project(project_root, ROSTER_PATH).map_err(|problem_text| (ROSTER_PATH, problem_text))?
    {
        return Ok(Some((ROSTER_PATH, parse_roster(&roster_text))));
    }
    let mut layer_texts = Vec::new();
    for layer_path in LAYER_PATHS {
        layer_texts
            .extend(read_inside_project(project_root, layer_path).map_err(|problem_text| (layer_path, problem_text))?);
    }
    Ok(roster_from_toml(&layer_texts).map(|roster| (LAYER_PATHS[0], roster)))
}

/// Reads a file of the project, if it exists and is inside the project.
fn read_inside_project(project_root: &Path, file_path: &str) -> Result<Option<String>, String> {
    let file_path = project_root.join(file_path);
    match fs::symlink_metadata(&file_path) {
        // A file where a directory is expected means that there is no roster, either.
        Err(cause) if matches!(cause.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            return Ok(None);
        }
        Err(cause) => return Err(format!("cannot be read: {cause}")),
        Ok(_) => {}
    }
    if let Some(link_target) = Project::from_root(project_root).resolve_outside(&file_path) {
        return Err(format!("points outside the project, to {}", link_target.display()));
    }
    match fs::metadata(&file_path) {
        // Reading a pipe would never end.
        Ok(file_metadata) if !file_metadata.is_file() => Err("is not a file".into()),
        Ok(file_metadata) if file_metadata.len() > MAX_ROSTER_BYTES => Err("is larger than 1 MB".into()),
        Ok(_) => fs::read_to_string(&file_path).map(Some).map_err(|cause| format!("cannot be read: {cause}")),
        Err(cause) => Err(format!("cannot be read: {cause}")),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    const THREE_PERSONAS: &str = "title,role\nClerk,bills\nCook,food\nPilot,charts\n";

    fn project_with_roster(manifest: &[u8]) -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        let roster_path = directory.path().join(ROSTER_PATH);
        fs::create_dir_all(roster_path.parent().unwrap()).unwrap();
        fs::write(roster_path, manifest).unwrap();
        directory
    }

    fn describe_roster(manifest: &[u8], min_personas: u32) -> String {
        let party_roster = read_roster(project_with_roster(manifest).path(), min_personas);
        let persona_names: Vec<String> = party_roster.personas.iter().map(|persona| persona.name.clone()).collect();
        format!("{}|{}", persona_names.join(","), party_roster.warning.unwrap_or_default())
    }

    #[test]
    fn a_roster_is_used_if_it_has_enough_personas() {
        let warning_text =
            |problem_text: &str| format!("|{ROSTER_PATH} {problem_text}; parties use the built-in personas");
        let oversized = "x".repeat(1_048_577);
        let broken_csv = format!("{THREE_PERSONAS}\"Mate,x\n");
        for (manifest, min_personas, expected) in [
            (THREE_PERSONAS.as_bytes(), 1, "Clerk,Cook,Pilot|".to_string()),
            (THREE_PERSONAS.as_bytes(), 4, warning_text("has 3 personas, but a party needs 4")),
            (b"title\nClerk\nCook\n", 3, warning_text("has 2 personas, but a party needs 3")),
            (b"name,title\nbmad-master,Master\n", 3, "|".into()),
            (b"", 3, warning_text("is empty")),
            (b"path,hash\n", 3, warning_text("has no column `title`, `displayName` or `name`")),
            (b"title\nCl\xff", 3, warning_text("cannot be read: stream did not contain valid UTF-8")),
            (oversized.as_bytes(), 3, warning_text("is larger than 1 MB")),
            (
                broken_csv.as_bytes(),
                3,
                format!("Clerk,Cook,Pilot|{ROSTER_PATH} has an unclosed quote in line 5; the other personas take part"),
            ),
        ] {
            assert_eq!(describe_roster(manifest, min_personas), expected);
        }
    }

    #[test]
    fn late_eras_keep_the_roster_in_their_settings() {
        let directory = tempfile::tempdir().unwrap();
        let write_file = |relative_path: &str, file_text: &str| {
            fs::create_dir_all(directory.path().join(relative_path).parent().unwrap()).unwrap();
            fs::write(directory.path().join(relative_path), file_text).unwrap();
        };
        let roster_names = || {
            let PartyRoster { personas, warning } = read_roster(directory.path(), 2);
            (personas.iter().map(|persona| persona.name.clone()).collect::<Vec<_>>().join(","), warning)
        };
        write_file("_bmad/config.toml", "[core]\nuser_name = 'x'\n");
        assert_eq!(roster_names(), (String::new(), None));
        write_file(
            "_bmad/config.toml",
            "[agents.a]\ntitle = 'Pilot'\n[agents.b]\ntitle = 'Cook'\n[agents.c]\ntitle = 'Clerk'\n",
        );
        write_file("_bmad/custom/config.toml", "[agents.c]\ntitle = 'Mate'\n");
        assert_eq!(roster_names(), ("Pilot,Cook,Mate".into(), None));
        write_file("_bmad/custom/config.toml", "[agents.a]\ntitle = 'Cook'\n[agents.c]\ntitle = 'cook'\n");
        let too_few_warning =
            "_bmad/config.toml has 1 personas, but a party needs 3; parties use the built-in personas";
        assert_eq!(roster_names().1.as_deref(), Some(too_few_warning));
        write_file(ROSTER_PATH, THREE_PERSONAS);
        assert_eq!(roster_names().0, "Clerk,Cook,Pilot", "the list is asked first");
    }

    #[test]
    fn custom_agents_take_part_in_parties() {
        let directory = project_with_roster(b"title,role\nClerk,bills\nCook,food\n");
        let custom_path = directory.path().join(CUSTOM_ROSTER_PATH);
        fs::write(&custom_path, "name,title,role\ntax,Tax Lawyer,taxes\n").unwrap();
        let PartyRoster { personas, warning } = read_roster(directory.path(), 3);
        let persona_names: Vec<&str> = personas.iter().map(|persona| persona.name.as_str()).collect();
        assert_eq!((persona_names, warning), (vec!["Clerk", "Cook", "Tax Lawyer"], None));
        fs::write(&custom_path, "").unwrap();
        let warning = read_roster(directory.path(), 2).warning.unwrap();
        assert!(warning.contains("has 2 personas, but a party needs 3"), "{warning}");
    }

    #[test]
    fn a_project_without_a_roster_gives_no_warning() {
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(read_roster(directory.path(), 3), PartyRoster::default());
        fs::write(directory.path().join("_bmad"), "a file").unwrap();
        assert_eq!(read_roster(directory.path(), 3), PartyRoster::default());
    }

    #[test]
    fn a_roster_is_not_followed_out_of_the_project() {
        let other_project = project_with_roster(THREE_PERSONAS.as_bytes());
        for (link_path, link_target) in [
            (ROSTER_PATH, other_project.path().join(ROSTER_PATH)),
            ("_bmad/_config", other_project.path().join("_bmad/_config")),
            ("_bmad", other_project.path().join("_bmad")),
            (ROSTER_PATH, other_project.path().join("gone")),
        ] {
            let this_project = tempfile::tempdir().unwrap();
            fs::create_dir_all(this_project.path().join(link_path).parent().unwrap()).unwrap();
            symlink(&link_target, this_project.path().join(link_path)).unwrap();
            let party_roster = read_roster(this_project.path(), 3);
            assert_eq!(party_roster.personas, [], "{link_path}");
            let warning = party_roster.warning.unwrap_or_default();
            assert!(warning.contains("points outside the project, to "), "{link_path}: {warning}");
        }
        let inner_project = project_with_roster(THREE_PERSONAS.as_bytes());
        fs::rename(inner_project.path().join(ROSTER_PATH), inner_project.path().join("team.csv")).unwrap();
        symlink("../../team.csv", inner_project.path().join(ROSTER_PATH)).unwrap();
        assert_eq!(read_roster(inner_project.path(), 3).personas.len(), 3, "a link inside the project is followed");
    }
}
