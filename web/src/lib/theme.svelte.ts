// Light or dark: as the system says until the reader chooses.

type Choice = 'auto' | 'light' | 'dark';
const KEY = 'chainrule-theme';
const system = matchMedia('(prefers-color-scheme: dark)');

class Theme {
  choice = $state<Choice>((localStorage.getItem(KEY) as Choice | null) ?? 'auto');
  #system = $state(system.matches);

  constructor() {
    system.addEventListener('change', () => (this.#system = system.matches));
    this.#apply();
  }

  get dark(): boolean {
    return this.choice === 'dark' || (this.choice === 'auto' && this.#system);
  }

  toggle() {
    this.choice = this.dark ? 'light' : 'dark';
    localStorage.setItem(KEY, this.choice);
    this.#apply();
  }

  #apply() {
    if (this.choice === 'auto') delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = this.choice;
  }
}

export const theme = new Theme();
