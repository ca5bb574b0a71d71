// Pages as fragments: `#/lessons/broadcast/2`, `#/backward?example=names`.

class Route {
  path = $state<string[]>([]);
  query = $state<Record<string, string>>({});

  constructor() {
    addEventListener('hashchange', () => this.#read());
    this.#read();
  }

  #read() {
    const [path, query] = location.hash.replace(/^#\/?/, '').split('?');
    this.path = path.split('/').filter(Boolean).map(decodeURIComponent);
    this.query = Object.fromEntries(new URLSearchParams(query ?? ''));
  }
}

export const route = new Route();

export function go(path: string) {
  location.hash = path;
}
