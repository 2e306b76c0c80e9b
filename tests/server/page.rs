//! The page as a browser shows it.

use image::{GenericImageView, Rgba};

use crate::browser::Browser;
use crate::process::Server;

/// The line of the memory that there is, and that of what jobs hold.
const CAPACITY: Rgba<u8> = Rgba([255, 0, 0, 255]);
const HELD: Rgba<u8> = Rgba([0, 150, 136, 255]);

/// Where a browser has to be there, it is set.
fn browser() -> Option<Browser> {
    let browser = Browser::find().unwrap();
    if browser.is_none() {
        assert!(std::env::var_os("ADMIT_TEST_BROWSER").is_none(), "there is no browser");
        eprintln!("skipped: it needs Chromium");
    }
    browser
}

#[test]
fn the_plots_are_drawn_again_and_again() {
    let Some(browser) = browser() else { return };
    let server = Server::start();
    let page = browser.page(&server.url()).unwrap();
    let drawn = page.split("data-drawn=\"").nth(1).and_then(|rest| rest.split('"').next());
    let drawn: u32 = drawn.unwrap_or_else(|| panic!("{page}")).parse().unwrap();
    assert!(drawn >= 3, "{drawn} times");
    assert_eq!(page.matches("src=\"blob:").count(), 3, "{page}");
    assert!(page.contains(r#"<p id="state" role="status"></p>"#), "{page}");
}

#[test]
fn the_lines_are_seen_and_show_what_happens() {
    let Some(browser) = browser() else { return };
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start();
    let held = |name: &str| {
        let file = folder.path().join(name);
        browser.screenshot(&server.url(), &file).unwrap();
        let picture = image::open(&file).unwrap();
        let of = |color| picture.pixels().filter(move |(_, _, pixel)| *pixel == color);
        assert!(of(CAPACITY).count() > 20, "{} red pixels", of(CAPACITY).count());
        of(HELD).map(|(x, y, _)| (x, y)).collect::<Vec<_>>()
    };
    let before = held("before.png");
    // An answer that nobody takes.
    let mut rng = fastrand::Rng::with_seed(1);
    let body: Vec<u8> = (0..24 << 20).map(|_| rng.u8(..)).collect();
    let mut connection = server.begin("/gzip", body.len());
    connection.send(&body);
    server.wait_for("admit_kept_bytes{lane=\"gzip\"}", |bytes| bytes > 0.0);
    let after = held("after.png");
    assert!(before.len() > 20 && before != after, "{} pixels", before.len());
}
