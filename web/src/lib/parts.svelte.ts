// Parts of the page that are loaded when they are needed. A server that is gone fails them: each is
// asked for again until it comes, and the page says so meanwhile.

const FIRST_WAIT = 500;
const LONGEST_WAIT = 8000;

class Parts {
  /** Parts that did not come yet. */
  missing = $state(0);

  async load<T>(load: () => Promise<T>): Promise<T> {
    try {
      return await load();
    } catch {
      this.missing++;
    }
    try {
      for (let wait = FIRST_WAIT; ; wait = Math.min(2 * wait, LONGEST_WAIT)) {
        await new Promise((done) => setTimeout(done, wait));
        const part = await load().catch(() => null);
        if (part !== null) return part;
      }
    } finally {
      this.missing--;
    }
  }
}

export const parts = new Parts();
