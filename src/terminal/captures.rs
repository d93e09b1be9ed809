//! What real programs wrote to a terminal of 80 columns and 24 rows (`tests/captures`), whole and damaged.

use proptest::prelude::*;

use super::painter::Painter;
use super::screen::Screen;

/// Bytes of one frame.
const BUDGET: usize = 16 * 1024;

const CAPTURES: [(&str, &[u8]); 9] = [
    ("bars", include_bytes!("../../tests/captures/bars")),
    ("git-diff", include_bytes!("../../tests/captures/git-diff")),
    ("git-log", include_bytes!("../../tests/captures/git-log")),
    ("less", include_bytes!("../../tests/captures/less")),
    ("ls", include_bytes!("../../tests/captures/ls")),
    ("npm", include_bytes!("../../tests/captures/npm")),
    ("nvim", include_bytes!("../../tests/captures/nvim")),
    ("progress", include_bytes!("../../tests/captures/progress")),
    ("python", include_bytes!("../../tests/captures/python")),
];

fn text(bytes: &[u8]) -> String {
    let mut screen = Screen::new(80, 24, None);
    screen.feed(bytes);
    screen.finish();
    screen.text().output
}

fn capture(name: &str) -> &'static [u8] {
    CAPTURES.iter().find(|(known, _)| *known == name).map_or(&[], |(_, bytes)| bytes)
}

/// Something that goes wrong with bytes on their way, or that a program does wrong.
#[derive(Debug, Clone)]
enum Damage {
    Changed(prop::sample::Index, u8),
    Put(prop::sample::Index, Vec<u8>),
    Lost(prop::sample::Index, usize),
    Again(prop::sample::Index, usize),
}

impl Damage {
    fn apply(&self, bytes: &mut Vec<u8>) {
        let span = |at: &prop::sample::Index, length: usize, bytes: &[u8]| {
            let at = at.index(bytes.len() + 1);
            at..(at + length).min(bytes.len())
        };
        match self {
            Self::Changed(at, byte) if !bytes.is_empty() => {
                let at = at.index(bytes.len());
                bytes[at] = *byte;
            }
            Self::Changed(..) => {}
            Self::Put(at, new) => {
                let at = at.index(bytes.len() + 1);
                bytes.splice(at..at, new.iter().copied());
            }
            Self::Lost(at, length) => drop(bytes.drain(span(at, *length, bytes))),
            Self::Again(at, length) => {
                let span = span(at, *length, bytes);
                let again = bytes[span.clone()].to_vec();
                bytes.splice(span.end..span.end, again);
            }
        }
    }
}

fn damage() -> impl Strategy<Value = Damage> {
    let at = any::<prop::sample::Index>;
    prop_oneof![
        (at(), any::<u8>()).prop_map(|(at, byte)| Damage::Changed(at, byte)),
        (at(), prop::collection::vec(any::<u8>(), 1..8)).prop_map(|(at, bytes)| Damage::Put(at, bytes)),
        (at(), 1_usize..60).prop_map(|(at, length)| Damage::Lost(at, length)),
        (at(), 1_usize..200).prop_map(|(at, length)| Damage::Again(at, length)),
    ]
}

#[test]
fn what_programs_wrote_is_read_as_a_user_would_read_it() {
    assert!(text(capture("git-log")).contains("merged"));
    assert!(text(capture("ls")).contains("main.rs"));
    assert_eq!(text(capture("progress")), "[##########] 100%\ndone\n");
    assert!(text(capture("python")).contains("ZeroDivisionError"), "{}", text(capture("python")));
    assert!(text(capture("npm")).contains("Map(1) { 1 => 2 }"));
    let bars = text(capture("bars"));
    assert!(bars.contains("row 0\n") && bars.contains("row 29"), "{bars}");
    for (name, bytes) in CAPTURES {
        assert!(!text(bytes).contains('\x1b'), "{name}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: std::env::var("PROPTEST_CASES").ok().and_then(|count| count.parse().ok()).unwrap_or(60),
        ..ProptestConfig::default()
    })]

    #[test]
    fn damaged_captures_give_bounded_text_and_only_colours(
        which in 0..CAPTURES.len(),
        damages in prop::collection::vec(damage(), 0..20),
        chunk in 1_usize..400,
        size in (1_u16..200, 1_u16..60),
        limit in prop::option::of(0_u64..2_000),
    ) {
        let mut bytes = CAPTURES[which].1.to_vec();
        for damage in &damages {
            damage.apply(&mut bytes);
        }
        let (mut screen, mut painter) = (Screen::new(80, 24, limit), Painter::default());
        for (at, piece) in bytes.chunks(chunk).enumerate() {
            screen.feed(piece);
            if at == 2 {
                screen.resize(size.0, size.1);
            }
            let painted = painter.paint(&mut screen, BUDGET).bytes;
            for (at, _) in painted.match_indices('\x1b') {
                let rest = &painted[at + 1..];
                let end = rest.find(|char: char| char.is_ascii_alphabetic());
                prop_assert!(rest.starts_with('[') && end.is_some_and(|end| "mACJ".contains(&rest[end..=end])));
            }
        }
        screen.finish();
        let text = screen.text();
        prop_assert!(!text.output.contains('\x1b'));
        prop_assert!(limit.is_none_or(|limit| text.output.len() as u64 <= limit));
    }
}
