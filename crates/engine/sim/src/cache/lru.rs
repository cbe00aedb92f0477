//! Which pages are in memory, by the time of their last use.
//!
//! Invariant: no more than the bound are in memory, except for pages that may not leave. Exact
//! least-recently-used order; the kernel's two lists only come near it.

const NONE: u32 = u32::MAX;
const ABSENT: u32 = u32::MAX - 1;

#[derive(Clone, Copy, Debug)]
struct Link {
    /// `ABSENT` when the page is not in memory.
    older: u32,
    younger: u32,
}

/// The pages in memory.
#[derive(Clone, Debug)]
pub(super) struct Lru {
    links: Vec<Link>,
    oldest: u32,
    youngest: u32,
    held: u32,
    held_max: u32,
}

impl Lru {
    /// Nothing in memory yet, of so many pages.
    pub(super) fn new(pages: u32, held_max: u32) -> Self {
        let links = vec![Link { older: ABSENT, younger: NONE }; pages as usize];
        Self { links, oldest: NONE, youngest: NONE, held: 0, held_max }
    }

    pub(super) fn has(&self, page: u32) -> bool {
        self.links[page as usize].older != ABSENT
    }

    pub(super) fn held(&self) -> u32 {
        self.held
    }

    /// Makes a page the youngest, and takes the oldest that may leave out until there is room.
    pub(super) fn use_page(&mut self, page: u32, may_leave: impl Fn(u32) -> bool) {
        if self.has(page) {
            self.unlink(page);
        }
        self.link(page);
        let mut candidate = self.oldest;
        while self.held > self.held_max && candidate != page {
            let next = self.links[candidate as usize].younger;
            if may_leave(candidate) {
                self.unlink(candidate);
            }
            candidate = next;
        }
    }

    fn link(&mut self, page: u32) {
        self.links[page as usize] = Link { older: self.youngest, younger: NONE };
        match self.youngest {
            NONE => self.oldest = page,
            before => self.links[before as usize].younger = page,
        }
        self.youngest = page;
        self.held += 1;
    }

    fn unlink(&mut self, page: u32) {
        let Link { older, younger } = self.links[page as usize];
        match older {
            NONE => self.oldest = younger,
            older => self.links[older as usize].younger = younger,
        }
        match younger {
            NONE => self.youngest = older,
            younger => self.links[younger as usize].older = older,
        }
        self.links[page as usize].older = ABSENT;
        self.held -= 1;
    }
}
