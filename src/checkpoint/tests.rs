use std::fs;
use std::path::PathBuf;

use tempfile::TempDir;

use super::*;

const CHAT: ChatId = ChatId(1);

struct Project {
    checkpoints: Checkpoints,
    folder: TempDir,
    state: TempDir,
    turn: u64,
}

impl Project {
    fn new(limits: Limits) -> std::io::Result<Self> {
        let (folder, state) = (tempfile::tempdir()?, tempfile::tempdir()?);
        let checkpoints = Checkpoints::default();
        checkpoints.configure(state.path().join("checkpoints"), Some("1-test"), limits);
        Ok(Self { checkpoints, folder, state, turn: 0 })
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, text: &str) -> std::io::Result<()> {
        fs::write(self.path(name), text)
    }

    fn begin(&mut self) {
        // Files are stamped with a clock that lags behind by a tick of the system.
        let earlier = SystemTime::now();
        while SystemTime::now() < earlier + std::time::Duration::from_millis(20) {
            std::thread::yield_now();
        }
        self.turn += 1;
        let root = self.folder.path().to_owned();
        self.checkpoints.begin(CHAT, self.turn, root.clone());
        self.checkpoints.survey(&root, Some((CHAT, self.turn)));
        while SystemTime::now() < earlier + std::time::Duration::from_millis(40) {
            std::thread::yield_now();
        }
    }

    fn left(&self, name: &str) {
        let path = self.path(name);
        self.checkpoints.name(CHAT, &path);
        self.checkpoints.left(CHAT, &path, &look(&path));
    }

    /// What a file was before a turn.
    fn before(&self, turn: u64, name: &str) -> Was {
        let stories = self.checkpoints.stories(CHAT, Some(turn)).map(|(_, stories)| stories).unwrap_or_default();
        let story = stories.into_iter().find(|(path, _)| *path == self.path(name));
        let chapter = story.and_then(|(_, chapters)| chapters.last().cloned());
        chapter.map_or(Was::Unknown("no such story".into()), |chapter| chapter.before)
    }
}

fn is_text(was: &Was, text: &str) -> bool {
    matches!(was, Was::Bytes { bytes, .. } if &**bytes == text.as_bytes())
}

#[test]
fn what_a_command_changed_is_known_although_nobody_named_it() -> std::io::Result<()> {
    let mut project = Project::new(Limits::default())?;
    project.write("changed", "old")?;
    project.write("deleted", "old")?;
    project.begin();
    project.write("changed", "new")?;
    project.write("created", "new")?;
    fs::remove_file(project.path("deleted"))?;
    let mut changed = project.checkpoints.changed_since(CHAT, project.folder.path());
    changed.sort();
    assert_eq!(changed, ["changed", "created", "deleted"].map(|name| project.path(name)));
    for name in ["changed", "created", "deleted"] {
        project.left(name);
    }
    assert!(is_text(&project.before(1, "changed"), "old"));
    assert!(is_text(&project.before(1, "deleted"), "old"));
    assert_eq!(project.before(1, "created"), Was::Missing);
    Ok(())
}

#[test]
fn what_git_ignores_is_kept_once_a_call_names_it() -> std::io::Result<()> {
    let mut project = Project::new(Limits::default())?;
    project.write(".gitignore", "*.env\n")?;
    project.write("named.env", "old")?;
    project.write("late.env", "old")?;
    project.begin();
    project.checkpoints.name(CHAT, &project.path("named.env"));
    project.checkpoints.name(CHAT, &project.path("new.env"));
    for name in ["named.env", "late.env", "new.env"] {
        project.write(name, "new")?;
        project.left(name);
    }
    assert!(is_text(&project.before(1, "named.env"), "old"));
    assert_eq!(project.before(1, "new.env"), Was::Missing);
    // It was not seen before: what is there must not be deleted as if it were new.
    assert!(matches!(project.before(1, "late.env"), Was::Unknown(_)));
    Ok(())
}

#[test]
fn what_is_too_large_is_said_to_be_so() -> std::io::Result<()> {
    let mut project = Project::new(Limits { file_bytes: 4, ..Limits::default() })?;
    project.write("large", "12345")?;
    project.write("named", "12345")?;
    project.begin();
    project.checkpoints.name(CHAT, &project.path("named"));
    for name in ["large", "named"] {
        project.write(name, "new")?;
        project.left(name);
    }
    assert!(matches!(project.before(1, "large"), Was::Unknown(why) if why.contains("larger")));
    assert!(is_text(&project.before(1, "named"), "12345"));
    Ok(())
}

#[test]
fn turns_are_found_by_number_and_forgotten_when_there_is_no_room() -> std::io::Result<()> {
    let mut project = Project::new(Limits { bytes: 8, ..Limits::default() })?;
    for text in ["one", "two", "three"] {
        project.begin();
        project.write("a", text)?;
        project.left("a");
    }
    let newest = project.checkpoints.stories(CHAT, None);
    assert!(matches!(&newest, Some((3, stories)) if stories.len() == 1));
    // The first turns had to go for the third.
    assert!(matches!(project.checkpoints.stories(CHAT, Some(1)), Some((1, stories)) if stories[0].1.len() < 3));
    project.checkpoints.undone(CHAT, 1, &BTreeSet::from([project.path("a")]));
    assert_eq!(project.checkpoints.stories(CHAT, None), None);
    Ok(())
}

#[test]
fn the_users_own_save_is_known() -> std::io::Result<()> {
    let project = Project::new(Limits::default())?;
    let path = project.path("a");
    assert!(!project.checkpoints.is_own(&path));
    project.write("a", "user")?;
    project.checkpoints.mark_own(&path);
    assert!(project.checkpoints.is_own(&path));
    project.write("a", "agent!")?;
    assert!(!project.checkpoints.is_own(&path));
    fs::remove_file(&path)?;
    assert!(!project.checkpoints.is_own(&path));
    project.checkpoints.mark_own(&path);
    assert!(project.checkpoints.is_own(&path));
    Ok(())
}

#[test]
fn the_next_helper_of_the_same_neovim_knows_what_was_done() -> std::io::Result<()> {
    let mut project = Project::new(Limits::default())?;
    project.write("a", "one")?;
    project.write("b", "b")?;
    project.begin();
    for text in ["two", "three"] {
        project.write("a", text)?;
        project.left("a");
    }
    project.write("b", "undone")?;
    project.left("b");
    project.begin();
    project.write("new", "n")?;
    project.left("new");
    project.checkpoints.undone(CHAT, 1, &BTreeSet::from([project.path("b")]));
    let flushed = |project: &Project| {
        if let Some(journal) = &project.checkpoints.inner.lock().journal {
            journal.flush();
        }
    };
    flushed(&project);
    let kept = project.state.path().join("checkpoints/1-test");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        assert_eq!(fs::metadata(&kept)?.permissions().mode() & 0o777, 0o700);
    }

    // It was killed in the middle of a line.
    let lines = kept.join("turns-1.jsonl");
    fs::write(&lines, [fs::read(&lines)?, b"{\"chat\":1,".to_vec()].concat())?;
    project.checkpoints = Checkpoints::default();
    project.checkpoints.configure(project.state.path().join("checkpoints"), Some("1-test"), Limits::default());
    assert_eq!((project.checkpoints.last_turn(CHAT), project.checkpoints.last_turn(ChatId(2))), (2, 0));
    let stories = project.checkpoints.stories(CHAT, Some(1)).map(|(_, stories)| stories).unwrap_or_default();
    let paths: Vec<_> = stories.iter().map(|(path, _)| path.clone()).collect();
    assert_eq!(paths, [project.path("a"), project.path("new")]);
    assert!(is_text(&stories[0].1[0].before, "one") && is_text(&stories[0].1[0].left, "three"));
    assert!(stories[1].1[0].before == Was::Missing && is_text(&stories[1].1[0].left, "n"));
    let contents = fs::read_dir(&kept)?.flatten().filter(|entry| entry.file_name() != "turns-1.jsonl").count();
    assert_eq!(contents, 3, "what nobody needs any more is gone");

    // Another Neovim knows nothing of it, and takes away what a dead one left.
    let dead = project.state.path().join("checkpoints/999999999-x");
    fs::create_dir_all(&dead)?;
    fs::write(dead.join("turns-1.jsonl"), "")?;
    let other = Checkpoints::default();
    other.configure(project.state.path().join("checkpoints"), Some("1-other"), Limits::default());
    assert_eq!(other.last_turn(CHAT), 0);
    assert!(!dead.exists() && kept.exists());
    // The helper ends, and its Neovim does not.
    other.leave(false);
    assert!(project.state.path().join("checkpoints/1-other").exists());
    project.checkpoints.leave(true);
    assert!(!kept.exists());
    Ok(())
}

#[test]
fn the_journal_goes_whole_while_it_is_being_written() -> std::io::Result<()> {
    for _ in 0..20 {
        let mut project = Project::new(Limits::default())?;
        project.begin();
        for number in 0..50 {
            project.write(&number.to_string(), "text")?;
            project.left(&number.to_string());
        }
        project.checkpoints.leave(true);
        let left = fs::read_dir(project.state.path().join("checkpoints"))?.flatten();
        let left: Vec<_> = left.filter(|entry| entry.metadata().is_ok_and(|metadata| metadata.is_dir())).collect();
        assert!(left.is_empty(), "{left:?}");
    }
    Ok(())
}

#[test]
fn what_has_no_room_in_the_journal_is_said_to_have_none() -> std::io::Result<()> {
    let mut project = Project::new(Limits { bytes: 12, ..Limits::default() })?;
    project.write("a", "one")?;
    project.begin();
    project.write("a", "much longer")?;
    project.left("a");
    if let Some(journal) = &project.checkpoints.inner.lock().journal {
        journal.flush();
    }
    project.checkpoints = Checkpoints::default();
    project.checkpoints.configure(project.state.path().join("checkpoints"), Some("1-test"), Limits::default());
    assert!(is_text(&project.before(1, "a"), "one"));
    let left = project.checkpoints.stories(CHAT, None).map(|(_, stories)| stories[0].1[0].left.clone());
    assert!(matches!(left, Some(Was::Unknown(_))), "{left:?}");
    Ok(())
}
